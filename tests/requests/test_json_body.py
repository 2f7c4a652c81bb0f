"""Bytes to a JSON object: everything that is not one gives ``invalid_json``."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import InvalidRequest
from antiphon.requests.json_body import MAX_DEPTH, parse_object


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"a": ',
        b"[]",
        b"1",
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"a": 1} x',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "{}".encode("utf-16"),
    ],
)
def test_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_object(body)
    assert (caught.value.code, caught.value.param) == ("invalid_json", None)


def test_depth_limit_itself_is_allowed() -> None:
    depth = MAX_DEPTH - 1
    assert "a" in parse_object(b'{"a":' + b"[" * depth + b"]" * depth + b"}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4), st.booleans())
def test_objects_pass_unchanged(value: dict[str, object], ascii_only: bool) -> None:
    assert parse_object(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=40))
def test_small_bytes_are_an_object_exactly_when_they_are_json(body: bytes) -> None:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        assert parse_object(body) == value
    else:
        with pytest.raises(InvalidRequest):
            parse_object(body)
