"""Reasoning that a client brings back is what this server wrote."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer

from antiphon.runs.envelope import VERSION, Envelope

KEY = Envelope("a key")


@given(text=st.text())
def test_what_was_sealed_is_unsealed(text: str) -> None:
    sealed = KEY.seal(text)
    assert sealed.isascii()
    assert KEY.seal(text) == sealed
    assert KEY.unseal(sealed) == text
    with pytest.raises(ValueError, match="not an envelope of this key"):
        Envelope("another key").unseal(sealed)


@given(at=st.integers(0, 10_000), put=st.characters(codec="ascii"))
def test_a_changed_envelope_never_gives_another_text(at: int, put: str) -> None:
    text = "Two plus two is four, as everybody knows."
    sealed = KEY.seal(text)
    at %= len(sealed)
    changed = sealed[:at] + put + sealed[at + 1 :]
    with suppress(ValueError):
        assert KEY.unseal(changed) == text  # some bits of the signature's spelling say nothing


@pytest.mark.parametrize("given", ["", "ap1.", "ap1.e30.", "gAAAAABm", "ap2.x", "ap1.é"])
def test_what_is_no_envelope_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="not an envelope"):
        KEY.unseal(given)


def test_a_signature_for_something_else_is_none() -> None:
    other = URLSafeSerializer("a key", salt="session").dumps("text")
    with pytest.raises(ValueError, match="not an envelope"):
        KEY.unseal(f"{VERSION}{other}")
