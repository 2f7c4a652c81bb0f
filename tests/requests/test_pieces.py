"""Long texts in pieces: what json makes of the whole, and no call into C for much at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.requests import pieces
from antiphon.requests.json_body import parse_object

TEXTS = ("", "a", "],[", '},{"a', '","x', "\\", "é🙂", ",", "role")
NAMES = ("a", "b", ',"', "},", "", "role")
VALUES = st.recursive(
    st.sampled_from([*TEXTS, 1, -5, 0.5, None, True, 12345678901234567890]),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    ),
    max_leaves=40,
)
FORMS: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """JSON of any form, whole or with a wound."""
    text = json.dumps(draw(VALUES), **draw(st.sampled_from(FORMS)))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(["", ",", "]", "}", '"', "{", "[", "1", ":", " ", ",]"]))
        text = text[:place] + piece + text[place + draw(st.integers(0, 2)) :]
    return text


def outcome(decode: Any) -> tuple[str, str]:
    try:
        return "value", repr(decode())
    except json.JSONDecodeError:
        return "error", ""


@pytest.mark.parametrize(("most", "least", "one"), [(3, 1, 1), (8, 2, 4), (32, 4, 16)])
@given(text=texts())
def test_pieces_give_what_json_gives(most: int, least: int, one: int, text: str) -> None:
    decoder = json.JSONDecoder()
    with patch.multiple(pieces, MOST=most, LEAST=least, ONE=one):
        found = outcome(lambda: pieces.decode(text, decoder, deepest=200))
    assert found == outcome(lambda: decoder.decode(text))


@pytest.mark.parametrize("border", [0, 1, 300, 399, 402, 405, 409])
def test_a_number_is_not_judged_by_its_beginning(border: int) -> None:
    """Without its exponent, it would be larger than any that is taken."""
    number = "1" + "0" * 400 + ".0e-395"
    before = '{"n":0,"x":"'
    filler = "p" * (pieces.ONE - len(before) - len('","n":') - border)
    text = f'{before}{filler}","n":{number},"z":"{"x" * pieces.LONG}"}}'
    assert parse_object(text.encode())["n"] == 100_000


def test_names_that_come_again_are_the_last() -> None:
    text = "{" + ",".join(f'"{index % 7}":{index}' for index in range(50_000)) + "}"
    assert pieces.decode(text, json.JSONDecoder(), deepest=9) == json.loads(text)


class Watched(json.JSONDecoder):
    """Notes how far each call went."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[int] = []

    def raw_decode(self, text: str, idx: int = 0) -> tuple[Any, int]:
        try:
            value, end = super().raw_decode(text, idx)
        except json.JSONDecodeError as error:
            self.spans.append(error.pos - idx)
            raise
        self.spans.append(end - idx)
        return value, end


def repeated(element: str) -> str:
    return f"[{','.join([element] * (500_000 // (len(element) + 1)))}]"


def long_texts() -> Iterator[Any]:
    plain = {
        "empty lists": "[]",
        "numbers": "123",
        "strings": '"abc"',
        "lookalikes": r'{"a":"},{\"a\"","b":[1,2]}',
        "parts": '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""}]}',
        "pretty": '{\n "role": "user"\n}',
        "mixed": '1,[2],{"a":1},"x"',
        "deep": "[" * 150 + "1" + "]" * 150,
        "long": "[" * 99 + ",".join("1" * 2000) + "]" * 99,
    }
    for name, element in plain.items():
        yield pytest.param(repeated(element), id=name)
    names = "{" + ",".join(f'"{index}":{index}' for index in range(40_000)) + "}"
    yield pytest.param(names, id="names")
    yield pytest.param(names.replace(",", ", ").replace(":", ": "), id="names in pairs apart")
    yield pytest.param(f'{{"a":{names},"b":[{names}]}}', id="names within")


@pytest.mark.parametrize("text", list(long_texts()))
def test_no_call_decodes_much_and_little_is_decoded_twice(text: str) -> None:
    decoder = Watched()
    assert pieces.decode(text, decoder, deepest=200) == json.loads(text)
    assert max(decoder.spans) <= pieces.MOST + 2
    assert sum(decoder.spans) <= 2.5 * len(text)
    assert len(decoder.spans) <= len(text) / 50


@pytest.mark.parametrize(
    "text",
    ["[" * 300_000 + "]" * 300_000, f'["{"x" * pieces.ONE}",' * 300 + "1" + "]" * 300],
    ids=["thin", "wide"],
)
def test_too_many_levels_are_an_error_however_many(text: str) -> None:
    with pytest.raises(RecursionError):
        pieces.decode(text, json.JSONDecoder(), deepest=200)
