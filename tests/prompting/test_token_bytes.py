"""The tables id → bytes: both families' spellings undone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from antiphon.prompting.token_bytes import byte_level, sentence_piece


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_the_reference_spells_in_bytes_is_undone(text: str) -> None:
    spelt = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    assert b"".join(byte_level(token for token, _ in spelt)) == text.encode()


def test_the_alphabet_covers_every_byte_once() -> None:
    assert sorted(byte_level(pre_tokenizers.ByteLevel.alphabet())) == [
        bytes([byte]) for byte in range(256)
    ]


def test_a_token_outside_the_alphabet_is_its_own_text() -> None:
    assert byte_level(["Ġthe", "a b", "日本", "\u00ad"]) == [
        b" the",
        b"a b",
        "日本".encode(),
        "\u00ad".encode(),
    ]


def test_pieces() -> None:
    pieces = ["▁the", "▁▁", "<0x0A>", "<0xff>", "<0x0A", "x<0x0A>", "é"]
    assert sentence_piece(pieces) == [
        b" the",
        b"  ",
        b"\n",
        b"\xff",
        b"<0x0A",
        b"x<0x0A>",
        "é".encode(),
    ]
    assert sentence_piece(["_a"], "_") == [b" a"]
