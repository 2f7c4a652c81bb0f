"""Values between tags: what they are, as they come, and what looks like their end and is none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import Piece, Segmenter, Tool, Tools, family

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "list": {"type": "array"},
        "map": {"type": "object"},
        "maybe": {"type": ["string", "null"]},
        "choice": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "boolean"}]},
        "count": {"type": "integer"},
    },
}
TOOL = Tool("f", parameters=SCHEMA)
TAGS = {
    "qwen3_coder": (
        "<tool_call>\n<function=f>\n",
        "<parameter={key}>\n{value}\n</parameter>\n",
        "</function>\n</tool_call>",
        "</parameter>",
    ),
    "glm45": (
        "<tool_call>f\n",
        "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
        "</tool_call>",
        "</arg_value>",
    ),
    "glm47": (
        "<tool_call>f",
        "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
        "</tool_call>",
        "</arg_value>",
    ),
    "hunyuan": (
        "<tool_calls><tool_call>f<tool_sep>\n",
        "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
        "</tool_call>\n</tool_calls>",
        "</arg_value>",
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="f">\n',
        '<parameter name="{key}">{value}</parameter>\n',
        "</invoke>\n</minimax:tool_call>",
        "</parameter>",
    ),
    "step3": (
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="f">',
        '<steptml:parameter name="{key}">{value}</steptml:parameter>',
        "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
        "</steptml:parameter>",
    ),
}
VALUES: dict[str, list[tuple[str, Any]]] = {
    "text": [("null", "null"), ("3", "3"), ("[1]", "[1]"), (' a "b" \\ ', ' a "b" \\ ')],
    "list": [
        ("[1, 2]", [1, 2]),
        ("[1, True, None]", [1, True, None]),
        ("['a', \"b\"]", ["a", "b"]),
        ("[]", []),
        ("[{'a': [(1, 2)]}]", [{"a": [[1, 2]]}]),
        ("none at all", "none at all"),
    ],
    "map": [('{"a": {"b": [1.5e3]}}', {"a": {"b": [1500.0]}}), ("{'k': False}", {"k": False})],
    "maybe": [("null", None), ("None", None), ("nul", "nul"), ("null and void", "null and void"),
              ("", ""), ("3", "3")],
    "choice": [("true", True), ("True", True), ("truth", "truth"), ("null", None)],
    "count": [("3", 3), ("-12", -12), ("three", "three")],
    "other": [("3", 3), ("prose", "prose"), ("[a](b)", "[a](b)"), ("{x}", "{x}"), ("[1]", [1])],
}  # fmt: skip


def cut(text: str) -> Iterator[list[str]]:
    """Whole, by characters, and in two at each place."""
    yield [text]
    yield list(text)
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]


def read(name: str, pieces: list[str], *, stop: bool = True) -> tuple[list[str], str, int]:
    """The arguments of each call, the text, and how many calls are closed."""
    segmenter = Segmenter(family(name), tools=Tools([TOOL]))
    segments: list[Any] = []
    for piece in pieces:
        seen = segmenter.glance(piece)
        segments += segmenter.feed([Piece(piece)]) if seen is None else [seen]
    calls: list[str] = []
    text, closed = "", 0
    for segment in [*segments, *segmenter.finish(cut=not stop)]:
        if isinstance(segment, CallOpened):
            calls.append("")
        elif isinstance(segment, CallInput):
            calls[-1] += segment.text
        elif isinstance(segment, CallClosed):
            closed += 1
        elif isinstance(segment, Text):
            text += segment.text
    return calls, text, closed


def same(name: str, text: str, *, stop: bool = True) -> tuple[list[str], str, int]:
    """What is read, which is the same for each cut."""
    told = [read(name, pieces, stop=stop) for pieces in cut(text)]
    assert all(one == told[0] for one in told), text
    return told[0]


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("key", VALUES)
def test_a_value_is_what_its_schema_says(name: str, key: str) -> None:
    head, parameter, end, _ = TAGS[name]
    for value, expected in VALUES[key]:
        if not value and name == "qwen3_coder":
            continue  # nothing between two line ends is one of them
        text = head + parameter.format(key=key, value=value) + end
        (arguments,), shown, closed = same(name, text)
        assert (json.loads(arguments), shown, closed) == ({key: expected}, "", 1), text


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("key", ["text", "maybe", "list"])
def test_what_looks_like_an_end_and_goes_on_is_of_the_value(name: str, key: str) -> None:
    head, parameter, end, tag = TAGS[name]
    inner = f"a {tag} b {tag[:-1]} {tag[1:]} <c> {tag}d"
    value = f'["{inner}"]' if key == "list" else inner
    text = head + parameter.format(key=key, value=value) + end
    (arguments,), shown, closed = same(name, text)
    expected = [inner] if key == "list" else inner
    assert (json.loads(arguments), shown, closed) == ({key: expected}, "", 1)


@pytest.mark.parametrize("name", TAGS)
def test_two_values_and_two_calls(name: str) -> None:
    head, parameter, end, _ = TAGS[name]
    two = parameter.format(key="text", value="x") + parameter.format(key="list", value="[1]")
    (arguments,), shown, closed = same(name, head + two + end)
    assert (json.loads(arguments), shown, closed) == ({"text": "x", "list": [1]}, "", 1)


@pytest.mark.parametrize("name", TAGS)
def test_a_text_that_ends_behind_a_value(name: str) -> None:
    head, parameter, _, _ = TAGS[name]
    text = (head + parameter.format(key="text", value="x")).rstrip()
    (arguments,), shown, closed = same(name, text)
    assert (json.loads(arguments), shown, closed) == ({"text": "x"}, "", 1)
    (arguments,), shown, closed = same(name, text, stop=False)
    assert (arguments, shown, closed) == ('{"text": "x"', "", 0)


@pytest.mark.parametrize("name", TAGS)
def test_a_value_that_is_cut(name: str) -> None:
    head, parameter, _, tag = TAGS[name]
    text = head + parameter.format(key="text", value="long").partition(tag)[0].rstrip()
    (arguments,), shown, closed = same(name, text, stop=False)
    assert (arguments, shown, closed) == ('{"text": "long', "", 0)


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize(("key", "value"), [("maybe", "Oslo is far"), ("list", '["Oslo is far"]')])
def test_a_value_is_passed_on_while_it_comes(name: str, key: str, value: str) -> None:
    head, parameter, _, _ = TAGS[name]
    begun = head + parameter.format(key=key, value=value).partition(" is")[0]
    calls, _, _ = read(name, [begun], stop=False)
    assert "Oslo" in calls[0]


@pytest.mark.parametrize("name", TAGS)
def test_space_behind_a_literal_is_of_the_value_where_text_follows(name: str) -> None:
    head, parameter, end, _ = TAGS[name]
    for key, literal in (("map", '{"a": 1}'), ("list", "[1]")):
        text = head + parameter.format(key=key, value=f"{literal} and  more \n ") + end
        (arguments,), shown, closed = same(name, text)
        expected = f'{{"{key}": {literal} and  more}}'
        assert (arguments, shown, closed) == (expected, "", 1)


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize(("digits", "kind"), [(400, int), (401, str)])
def test_where_a_string_may_stand_no_number_is_longer_than_that(
    name: str, digits: int, kind: type
) -> None:
    head, parameter, end, _ = TAGS[name]
    text = head + parameter.format(key="other", value="1" * digits) + end
    read_whole, read_apart = read(name, [text]), read(name, list(text))
    assert read_whole == read_apart
    assert type(json.loads(read_whole[0][0])["other"]) is kind


@pytest.mark.parametrize("name", TAGS)
def test_much_space_behind_an_end_is_no_text_of_the_value(name: str) -> None:
    head, parameter, end, _ = TAGS[name]
    for space, inside in ((" " * 200, True), (" " * 300, False)):
        text = head + parameter.format(key="text", value="x").rstrip() + space + "y"
        text += parameter.format(key="list", value="[1]").partition("[1]")[2] + end
        (arguments,), _, _ = same(name, text)
        assert ("y" in arguments) is inside


@pytest.mark.parametrize("name", TAGS)
def test_space_is_read_in_its_time(name: str) -> None:
    """Before a value, in one that may be several things, behind its end and between parameters."""
    head, parameter, end, tag = TAGS[name]
    space = " " * 60_000
    one = parameter.format(key="maybe", value=f"{space}x")
    two = parameter.format(key="list", value="[1]").replace(tag, tag + space)
    began = time.process_time()
    for value in (one, two):
        assert read(name, list(head + value + end))[2] == 1
    # Far above what it takes, and far below what anything that grows with the square would.
    assert time.process_time() - began < 10


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize(("key", "value"), [("text", "Oslo"), ("list", '["Oslo'), ("map", '{"a')])
def test_text_inside_a_string_is_taken_at_a_glance(name: str, key: str, value: str) -> None:
    head, parameter, _, _ = TAGS[name]
    segmenter = Segmenter(family(name), tools=Tools([TOOL]))
    segmenter.feed([Piece(head + parameter.format(key=key, value=value).partition(value)[0])])
    segmenter.feed([Piece(value)])
    assert segmenter.glance(" and so on") == CallInput(" and so on")
    assert all(segmenter.glance(text) is None for text in ("<", '"', "a\\", "a\n"))
    assert segmenter.glance("]}, 1") == CallInput("]}, 1")
