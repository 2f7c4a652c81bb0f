"""Every family reads a text the same however it is cut, and loses nothing that is no markup."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import Piece, Segmenter, Spec, family
from responsory.segments.formats import CALLS, REASONING
from responsory.segments.tools import Tool, Tools

WEATHER = Tool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
TOOLS = Tools([WEATHER, Tool("note", "custom"), Tool("ping", parameters={"type": "object"})])

EXAMPLES = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {ARGS}}\n</tool_call>',
    "llama3_json": '{"name": "get_weather", "parameters": {ARGS}}',
    "mistral_array": '[TOOL_CALLS] [{"name": "get_weather", "arguments": {ARGS}}]',
    "mistral_args": "[TOOL_CALLS]get_weather[ARGS]{ARGS}",
    "deepseek_v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
        "```json\n{ARGS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek_v31": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{ARGS}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        "<|tool_call_argument_begin|>{ARGS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "internlm": (
        '<|action_start|> <|plugin|>\n{"name": "get_weather", "parameters": {ARGS}}<|action_end|>'
    ),
    "cohere": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", '
        '"parameters": {ARGS}}\n]<|END_ACTION|>'
    ),
    "granite": '<|tool_call|>[{"name": "get_weather", "arguments": {ARGS}}]',
    "forced": '[{"name": "get_weather", "parameters": {ARGS}}]',
    "harmony": (
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGS}<|call|>"
    ),
    "qwen3_coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n{TEXT}\n</parameter>\n"
        "</function>\n</tool_call>"
    ),
    "glm45": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>{TEXT}</arg_value>\n"
        "</tool_call>"
    ),
    "glm47": (
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>{TEXT}</arg_value></tool_call>"
    ),
    "hunyuan": (
        "<tool_calls><tool_call>get_weather<tool_sep>\n<arg_key>city</arg_key>\n"
        "<arg_value>{TEXT}</arg_value>\n</tool_call>\n</tool_calls>"
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n'
        '<parameter name="city">{TEXT}</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "deepseek_v32": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">{TEXT}</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "deepseek_v4": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">{TEXT}</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
    ),
    "step3": (
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="get_weather"><steptml:parameter name="city">{TEXT}'
        "</steptml:parameter></steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"
    ),
    "pythonic": "[get_weather(city='{TEXT}')]",
    "lfm2": "<|tool_call_start|>[get_weather(city='{TEXT}')]<|tool_call_end|>",
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>{TEXT}<|"|>}<tool_call|>',
}
"""A call as each family writes it: ``{ARGS}`` for a JSON object, ``{TEXT}`` for plain text."""

THOUGHTS = {
    "plain": "",
    "think": "<think>Hm.</think>",
    "think_prefilled": "Hm.</think>",
    "mistral_think": "[THINK]Hm.[/THINK]",
    "kimi_vl": "◁think▷Hm.◁/think▷",
    "gemma4_thought": "<|channel>thought\nHm.<channel|>",
    "cohere_thinking": "<|START_THINKING|>Hm.<|END_THINKING|>",
    "granite_thinking": "Here is my thought process: Hm. Here is my response:",
    "harmony": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant",
}


def call_of(name: str, city: str = "Oslo") -> str:
    example = EXAMPLES[name]
    return example.replace("{ARGS}", json.dumps({"city": city})).replace("{TEXT}", city)


def read(
    pieces: Sequence[str], spec: Spec, *, cut: bool = False, glance: bool = True, **options: Any
) -> list[tuple[object, ...]]:
    """What comes of it, texts of one kind together; ``closed`` for each call that was."""
    segmenter = Segmenter(spec, tools=options.pop("tools", TOOLS), **options)
    read: list[tuple[object, ...]] = []
    for piece in pieces:
        seen = segmenter.glance(piece) if glance else None
        for segment in segmenter.feed([Piece(piece, (1,))]) if seen is None else [seen]:
            _put(read, segment)
    for segment in segmenter.finish(cut=cut):
        _put(read, segment)
    assert segmenter.output_tokens == len(pieces) or segmenter.ended
    return read


def _put(read: list[tuple[object, ...]], segment: Any) -> None:
    match segment:
        case CallOpened(kind, name):
            read.append((kind, name))
        case CallClosed():
            read.append(("closed",))
        case CallInput(text) | Reasoning(text):
            _join(read, type(segment), None, text)
        case Text(text):
            _join(read, Text, segment.phase, text)


def _join(read: list[tuple[object, ...]], kind: type, phase: object, text: str) -> None:
    if read and read[-1][:2] == (kind, phase):
        text = str(read.pop()[2]) + text
    read.append((kind, phase, text))


def cuts(text: str, draw: Random, count: int) -> Iterator[list[str]]:
    """The text cut in ``count`` ways, by one character and by chance."""
    yield list(text)
    for _ in range(count):
        places = sorted(draw.sample(range(1, len(text)), min(len(text) - 1, draw.randint(1, 9))))
        yield [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def alphabet(spec: Spec, example: str) -> list[str]:
    """Pieces of which a text may have anything to do with the family."""
    known = {marker for mode in spec.modes.values() for marker in mode.known}
    halves = [marker[: len(marker) // 2 + 1] for marker in sorted(known)]
    words = re.findall(r"[\w]+|\W", example)
    bits = ['{"', '"}', "{", "}", "[", "]", '"', "'", "\\", ", ", ": ", "null", "7", " ", "\n", "é"]
    return [*sorted(known), *halves, *words, *bits, example, example[: len(example) // 2]]


@pytest.mark.parametrize("name", sorted({*CALLS, *REASONING}))
def test_a_family_reads_the_same_in_any_cut(name: str) -> None:
    draw = Random(name)
    spec = family(name)
    example = call_of(name) if name in CALLS else THOUGHTS[name]
    pieces = alphabet(spec, example)
    for _ in range(60):
        text = "".join(draw.choice(pieces) for _ in range(draw.randint(1, 14)))
        for end in (False, True):
            whole = read([text], spec, cut=end, glance=False)
            for cut in cuts(text, draw, 4) if len(text) > 1 else ():
                assert read(cut, spec, cut=end) == whole, (text, cut)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_call_of_each_family(name: str) -> None:
    spec = family(name)
    called = [("function", "get_weather"), (CallInput, None, '{"city": "Oslo"}'), ("closed",)]
    assert read([call_of(name)], spec) == called
    assert read(list(call_of(name)), spec) == called
    # Another name than those that can be called is none: all of it is text.
    only = Tools([WEATHER], only=["ping"])
    shown = read([call_of(name)], spec, tools=only)
    assert {kind for kind, *_ in shown} <= {Text}
    if name != "harmony":  # whose headers are markup in any case
        assert shown == [(Text, None, call_of(name))]
    # Nor where no call is looked for.
    assert {kind for kind, *_ in read([call_of(name)], spec, calls=False)} <= {Text}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_text_that_opens_nothing_is_kept(name: str) -> None:
    spec = family(name)
    draw = Random(name)
    openers = [opener for mode in spec.modes.values() for opener in mode.known]
    bits = ["a <", " <|", "[", "]", "Hm.", "\n\n", "{", "é", "to=", "}", "'", '"', " x"]
    for _ in range(60):
        text = "A" + "".join(draw.choice(bits) for _ in range(12))
        text += draw.choice(openers)[:-1] if name not in ("pythonic", "forced") else ""
        if any(opener in text for opener in openers if len(opener) > 1):
            continue
        assert read(list(text), spec) == [(Text, None, text)]


@pytest.mark.parametrize("thought", sorted(THOUGHTS.keys() - {"harmony", "plain"}))
def test_a_call_ends_the_thought(thought: str) -> None:
    for name in ("hermes", "mistral_args", "qwen3_coder", "forced", "pythonic"):
        spec = family(f"{thought}+{name}")
        whole = read([THOUGHTS[thought] + call_of(name)], spec)
        assert whole[0] == (Reasoning, None, "Hm.")
        assert [kind for kind, *_ in whole[1:]] == ["function", CallInput, "closed"]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_call_that_is_cut_is_left_as_it_was(name: str) -> None:
    spec, text = family(name), call_of(name)
    for end in range(len(text)):
        before = read([text[:end]], spec, cut=True)
        closed = [part for part in before if part == ("closed",)]
        inputs = [str(part[2]) for part in before if part[0] is CallInput]
        for arguments in inputs:
            assert '{"city": "Oslo"}'.startswith(arguments)
            # Complete arguments may wait for a closer, but what is whole is never made so.
            assert not closed or arguments == '{"city": "Oslo"}'
        assert read(list(text[:end]), spec, cut=True) == before


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_megabyte_is_read_in_its_time(name: str) -> None:
    """Neither long arguments, nor a header without an end, nor brackets in brackets."""
    spec = family(name)
    began = time.process_time()
    long = call_of(name, "x" * 250_000)
    (_, shown, _) = read([long[at : at + 5] for at in range(0, len(long), 5)], spec)
    assert len(str(shown[2])) > 250_000
    opener = EXAMPLES[name].partition("get_weather")[0]
    endless = opener + "n" * 60_000
    assert read(list(endless), spec)
    deep = call_of(name).replace('"Oslo"', "[" * 1000 + "]" * 1000).replace("Oslo", "[" * 1000)
    assert read(list(deep), spec)[0] == ("function", "get_weather")
    # Far above what it takes, and far below what anything that grows with the square would.
    assert time.process_time() - began < 20


def test_every_family_is_tested() -> None:
    assert set(EXAMPLES) == set(CALLS)
    assert set(THOUGHTS) == set(REASONING)
