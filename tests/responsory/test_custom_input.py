"""The input of a custom tool is the string in which a model wrote it, decoded while it comes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import FORMATS, Piece, Segmenter
from responsory.segments.tools import Tool, Tools
from responsory.testing.strategies import splits

TOOLS = Tools([Tool("sh", "custom"), Tool("add")])
CALL = CallOpened("custom", "sh")


def run(parts: Iterable[str], *, cut: bool = False, tokens: bool = False) -> list[Any]:
    """The commands, those of one call joined; the texts of each are not empty."""
    segmenter = Segmenter(FORMATS["hermes"], tools=TOOLS, tokens=tokens)
    commands: list[Any] = []
    for part in [*parts, None]:
        found = segmenter.finish(cut=cut) if part is None else segmenter.feed([Piece(part, (1,))])
        for command in found:
            last = commands[-1] if commands else None
            if isinstance(command, CallInput | Text):
                assert command.text
                if type(command) is type(last):
                    commands[-1] = type(command)(last.text + command.text)
                    continue
                command = type(command)(command.text)
            commands.append(command)
    return commands


def a_call(arguments: str | None, name: str = "sh") -> str:
    key = "" if arguments is None else f', "arguments": {arguments}'
    return f'<tool_call>{{"name": "{name}"{key}}}</tool_call>'


def shown(arguments: str | None) -> str:
    """The input of a call with these arguments; the same for each character alone."""
    text = a_call(arguments) + "ok"
    commands = run([text])
    assert run(text) == run(text, tokens=True) == commands
    assert (commands[0], *commands[-2:]) == (CALL, CallClosed(), Text("ok"))
    return "".join(command.text for command in commands if isinstance(command, CallInput))


TEXTS = st.text(st.characters() | st.sampled_from('"\\/\n\t é😀{}u0d8'), max_size=20).filter(
    lambda text: text.isprintable() or text.encode("utf-8", "replace").decode() == text
)


@given(TEXTS, st.booleans(), st.sampled_from(["", " ", "\n\t"]), st.booleans(), st.data())
def test_the_input_is_the_string(
    text: str, ascii_only: bool, space: str, more: bool, data: st.DataObject
) -> None:
    literal = json.dumps(text, ensure_ascii=ascii_only)
    others = f'{space},{space}"why": [{{"input": "no"}}]' if more else ""
    written = a_call(f'{{{space}"input"{space}:{space}{literal}{others}{space}}}')
    expected = [CALL, *([CallInput(text)] if text else []), CallClosed()]
    assert run(data.draw(splits(written))) == run([written]) == run(written) == expected


def test_arguments_that_are_no_such_object_stand_as_they_are() -> None:
    for arguments in (
        '{"command": "ls", "input": "no"}', '{"input": ["ls"]}', '{"input" : null}', '["ls"]',
        '"ls"', "12", '{"Input": "x"}', '{"in put": "x"}', '{ "input": {"input": "x"}}',
    ):  # fmt: skip
        assert shown(arguments) == arguments
    # A function's are not looked into.
    assert run([a_call('{"input": "x"}', "add")])[1] == CallInput('{"input": "x"}')
    assert run([a_call('{"input": "x"}', "other")])[0] == CallOpened("function", "other")


def test_no_arguments_are_no_input() -> None:
    for arguments in (None, "{}", "{ \n}", "null", '""', '{"input": ""}', '{"input":"", "a": 1}'):
        assert shown(arguments) == ""


def test_escapes() -> None:
    for written, read in {
        r"a\n\t\"\\\/\b\f\r": 'a\n\t"\\/\b\f\r',
        r"\u00e9\ud83d\ude00\uD83D\uDE00": "é😀😀",
        r"\ud83d": "\ufffd",
        r"\ude00x": "\ufffdx",
        r"\ud83dx\ude00": "\ufffdx\ufffd",
        r"\ud83d\ud83d\ude00": "\ufffd😀",
        r"\ud83d\n": "\ufffd\n",
        r"\ud83d\u0041": "\ufffdA",
        r"\ud83d\u00zz": "\ufffd\\u00zz",
        # What JSON does not know stands as it was written.
        r"\x\u12": r"\x\u12",
        r"\u12g4\u\n": "\\u12g4\\u\n",
        "line\nbreak": "line\nbreak",
    }.items():
        assert shown(f'{{"input": "{written}"}}') == read


@given(st.text('a\\u"d83e0{ ', max_size=16), st.booleans(), st.data())
def test_any_text_in_any_cut(text: str, cut: bool, data: st.DataObject) -> None:
    """And what was shown of the beginning of a text is the beginning of what is shown of it."""
    begun = f'<tool_call>{{"name": "sh", "arguments": {{"input": "{text}'
    whole = run([begun], cut=cut)
    assert run(data.draw(splits(begun)), cut=cut) == run(begun, cut=cut) == whole
    part = run([begun[: -data.draw(st.integers(0, len(text))) or None]], cut=True)
    inputs = [
        next((command.text for command in commands if isinstance(command, CallInput)), "")
        for commands in (part, run([begun + '"}}'], cut=True))
    ]
    assert inputs[1].startswith(inputs[0])


def test_it_streams_and_is_never_mended() -> None:
    segmenter = Segmenter(FORMATS["hermes"], tools=TOOLS)
    steps = [
        '<tool_call>{"name": "sh", "arguments": {"inp',
        'ut": "ls',
        " -l",
        "\\",
        "n\\ud8",
        "3d",
    ]
    told = [segmenter.feed([Piece(step, (1,))]) for step in steps]
    assert told[0] == [CALL]
    assert told[1:] == [[CallInput("ls")], [CallInput(" -l")], [], [CallInput("\n")], []]
    assert segmenter.glance("\\u") is None, "it adds nothing yet"
    assert segmenter.feed([Piece("\\ude00")]) == [CallInput("😀")]
    assert segmenter.glance(" much text") == CallInput(" much text")
    assert segmenter.glance('"') is None
    assert segmenter.finish(cut=True) == []
    # What is held when the model stops is shown as it stands, and dropped when it was cut.
    for begun, rest in (('{"in', '{"in'), ('{"input": "a\\ud83d\\u1', "a\ufffd\\u1")):
        text = f'<tool_call>{{"name": "sh", "arguments": {begun}'
        assert run([text])[1:] == run(text)[1:] == [CallInput(rest)]
        assert run([text], cut=True)[1:] == ([] if rest[0] == "{" else [CallInput("a")])
    # Arguments that break behind the input add nothing to it.
    broken = '<tool_call>{"name": "sh", "arguments": {"input": "a", ]</tool_call>b'
    assert run(broken) == run([broken]) == [CALL, CallInput("a"), CallClosed(), Text("b")]
    broken = '<tool_call>{"name": "sh", "arguments": {"input" ]</tool_call>b'
    assert run(broken)[1] == run([broken])[1] == CallInput('{"input" ]')


def test_a_megabyte_of_input_in_small_pieces() -> None:
    for unit in ("\\u00e9", "\\\\", "a\\n", "  "):
        text = '<tool_call>{"name": "sh", "arguments": {"input": "' + unit * (200_000 // len(unit))
        parts = [text[at : at + 5] for at in range(0, len(text), 5)]
        (_, told) = run(parts, cut=True)
        assert told.text == json.loads(f'"{unit}"') * (200_000 // len(unit))
