"""Bytes to a JSON object: what is not one is ``invalid_json``, or has a number out of range."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import InvalidRequest
from antiphon.requests import json_body
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
        b'{"a": ' + b"9" * 5000 + b"} x",
        b"[" + b"9" * 5000 + b"]",
        b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "{}".encode("utf-16"),
    ],
)
def test_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_object(body)
    assert (caught.value.code, caught.value.param) == ("invalid_json", None)


LONG = b"9" * 5000


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b'{"seed": ' + LONG + b"}", "integer_above_max_value", "seed"),
        (b'{"seed": -' + LONG + b"}", "integer_below_min_value", "seed"),
        (b'{"a": [1, {"b": -' + LONG + b'}], "c": ' + LONG + b"}", "integer_below_min_value",
         "a[1].b"),
    ],
)  # fmt: skip
def test_an_integer_of_too_many_digits_is_out_of_range(body: bytes, code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_object(body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)
    assert caught.value.message == f"Invalid `{param}`: The number is out of range."


def test_a_name_that_comes_again_takes_the_place_of_a_number_out_of_range() -> None:
    assert parse_object(b'{"seed": ' + LONG + b', "seed": 1}') == {"seed": 1}


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


PIECES = [
    "a", "é", "[", "]", "{", "}", "ud800", r"\\", r"\"", r"\n", r"\u00e9",
    r"\ud83d", r"\ude00", r"\uD83D", r"\uDE00",
]  # fmt: skip
STRING = st.lists(st.sampled_from(PIECES), max_size=6).map(lambda parts: f'"{"".join(parts)}"')
TEXT = st.recursive(
    STRING | st.sampled_from(["1", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(STRING, inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=12,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@given(TEXT, st.integers(1, 5))
def test_depth_and_surrogates_are_those_of_a_walk(text: str, most: int) -> None:
    body = f'{{"a":{text}}}'.encode()
    value = unique_names(body)
    if value is None:  # of equal names one is lost to a walk, though its bytes were sent
        return
    with patch.object(json_body, "MAX_DEPTH", most):
        if depth(value) > most or has_lone_surrogate(value):
            with pytest.raises(InvalidRequest) as caught:
                parse_object(body)
            assert caught.value.code == "invalid_json"
        else:
            assert parse_object(body) == value


def unique_names(body: bytes) -> Any:
    twice = False

    def hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice = twice or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    value = json.loads(body, object_pairs_hook=hook)
    return None if twice else value
