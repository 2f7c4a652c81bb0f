"""A call of a custom tool gives its input as text, in families of every kind."""

from __future__ import annotations

import json

from responsory.commands import CallClosed, CallInput, CallOpened
from responsory.segments import Piece, Segmenter, family
from responsory.segments.tools import Tool, Tools


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
