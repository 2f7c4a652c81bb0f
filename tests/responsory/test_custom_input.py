"""The input of a custom tool is the text inside its arguments, in any cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.segments import Piece, Segmenter, family
from responsory.segments.custom_input import CustomInput
from responsory.segments.tools import Tool, Tools
from responsory.testing.strategies import splits

LOST = "\ufffd"


def unwrapped(pieces: list[str]) -> str:
    custom = CustomInput()
    return "".join([*map(custom.feed, pieces), custom.finish()])


@given(st.data(), st.text(), st.booleans())
def test_the_text_of_a_string_comes_back(data: st.DataObject, text: str, ascii_only: bool) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=ascii_only)
    pieces = data.draw(splits(arguments))
    assert unwrapped(list(pieces)) == text


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"input": "a"}', "a"),
        (' {\n"input" : "a" , "more": 1}', "a"),
        ("{}", ""),
        ("", ""),
        ("{", ""),
        ('{"input": "', ""),
        ('{"input": "a\\n', "a\n"),
        ('{"input": "a\\u00', "a"),
        ('{"input": "\\ud83d\\ude00"}', "\U0001f600"),
        ('{"input": "\\ud83dx"}', LOST + "x"),
        ('{"input": "\\ud83d\\n"}', LOST + "\n"),
        ('{"input": "\\ude00"}', LOST),
        ('{"input": "\\ud83d', LOST),
        ('{"input": "\\q"}', "\\q"),
        ('{"input": "\\u12xy"}', "\\u12xy"),
        ('{"input": 5}', '{"input": 5}'),
        ('{"patch": "a"}', '{"patch": "a"}'),
        ('{"in', '{"in'),
        ("[1]", "[1]"),
        ('"a"', '"a"'),
    ],
)
def test_arguments_of_any_shape(arguments: str, shown: str) -> None:
    assert unwrapped([arguments]) == shown
    assert unwrapped(list(arguments)) == shown
    for at in range(len(arguments)):
        assert unwrapped([arguments[:at], arguments[at:]]) == shown


def test_a_call_of_a_custom_tool_in_families_of_every_kind() -> None:
    tools = Tools([Tool("patch", "custom")])
    text = 'a "b" \\ c'
    escaped = json.dumps(text)
    envelope = f'{{"name": "patch", "arguments": {{"input": {escaped}}}}}'
    for name, raw in {
        "hermes": f"<tool_call>{envelope}</tool_call>",
        "mistral_args": f'[TOOL_CALLS]patch[ARGS]{{"input": {escaped}}}',
        "glm47": (
            f"<tool_call>patch<arg_key>input</arg_key><arg_value>{text}</arg_value></tool_call>"
        ),
        "pythonic": f"[patch(input={text!r})]",
        "gemma4": f'<|tool_call>call:patch{{input:<|"|>{text}<|"|>}}<tool_call|>',
    }.items():
        for pieces in ([raw], list(raw)):
            segmenter = Segmenter(family(name), tools=tools)
            segments = [seg for piece in pieces for seg in segmenter.feed([Piece(piece, (1,))])]
            segments += segmenter.finish()
            assert segments[0] == CallOpened("custom", "patch")
            assert segments[-1] == CallClosed()
            inputs = [seg.text for seg in segments if isinstance(seg, CallInput)]
            assert "".join(inputs) == text, name


def test_no_arguments_are_no_input() -> None:
    segmenter = Segmenter(family("hermes"), tools=Tools([Tool("go", "custom")]))
    raw = '<tool_call>{"name": "go"}</tool_call>'
    assert segmenter.feed([Piece(raw)]) == [CallOpened("custom", "go"), CallClosed()]


def test_arguments_that_break_are_shown_as_they_stand() -> None:
    segmenter = Segmenter(family("hermes"), tools=Tools([Tool("go", "custom")]))
    segments = segmenter.feed([Piece('<tool_call>{"name": "go", "arguments": {;x</tool_call>')])
    inputs = [seg.text for seg in segments if isinstance(seg, CallInput)]
    assert (segments[-1], "".join(inputs)) == (CallClosed(), "{;x")
