"""Calls in the text: what is one, what only looks like one, and what the end of the text means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import FORMATS, Piece, Segmenter, Spec, family

HERMES = FORMATS["hermes"]
OPENER, CLOSER = "<tool_call>", "</tool_call>"

Shown = list[tuple[str, str]]
"""(kind, text) of each item; ``f`` for a call of f that was closed, ``f…`` for one that was not."""


def shown(segments: Iterable[Any]) -> Shown:
    items: Shown = []
    is_open = False
    for segment in segments:
        if isinstance(segment, CallOpened):
            assert not is_open, "one call at a time"
            assert (segment.kind, segment.call_id) == ("function", None)
            items.append((segment.name + "…", ""))
            is_open = True
        elif isinstance(segment, CallClosed):
            assert is_open
            items[-1] = (items[-1][0][:-1], items[-1][1])
            is_open = False
        else:
            assert segment.text, "no segment is empty"
            kind = "" if isinstance(segment, CallInput) else type(segment).__name__.lower()
            assert is_open == (kind == "")
            if kind and (not items or items[-1][0] != kind):
                items.append((kind, ""))
            items[-1] = (items[-1][0], items[-1][1] + segment.text)
    return items


def run(
    parts: Iterable[str], spec: Spec = HERMES, *, cut: bool = False, **options: Any
) -> tuple[Shown, Segmenter]:
    segmenter = Segmenter(spec, **options)
    segments: list[Any] = []
    for at, part in enumerate(parts):
        segments += segmenter.feed([Piece(part, (at,))])
    segments += segmenter.finish(cut=cut)
    assert segmenter.finish(cut=cut) == [], "the end is the end"
    return shown(segments), segmenter


def cuts(text: str) -> Iterator[Sequence[str]]:
    """Whole, each character alone, and every cut in two."""
    yield text
    yield [text]
    yield from ((text[:at], text[at:]) for at in range(len(text) + 1))


def call(name: str, arguments: str) -> str:
    return f'{OPENER}\n{{"name": "{name}", "arguments": {arguments}}}\n{CLOSER}'


WEATHER = call("weather", '{"city": "Bergen"}')
SUM = call("sum", '{"x": 1, "y": [2]}')
SEEN = [("weather", '{"city": "Bergen"}'), ("sum", '{"x": 1, "y": [2]}')]

RULES: dict[str, tuple[str, Shown]] = {
    "a call": (WEATHER, SEEN[:1]),
    "text around it": (f"Now:\n{WEATHER}\nDone. ", [("text", "Now:"), SEEN[0], ("text", "Done. ")]),
    "two": (f" \n{WEATHER}\n\n{SUM}\n", SEEN),
    "two with nothing between": (WEATHER + SUM, SEEN),
    "two without closers": ((WEATHER + SUM).replace(CLOSER, ""), SEEN),
    "no closer, then text": (f'{OPENER}{{"name": "f"}} so', [("f", "{}"), ("text", "so")]),
    "the order of the keys": (
        OPENER + '{"arguments": {"a": [1]} , "id": {"n": "}"}, "name": "f"}' + CLOSER,
        [("f", '{"a": [1]}')],
    ),
    "arguments as they were written": (
        OPENER + '{"name":"f","arguments": \n { "a" :\t1.0e3 , "b":"\\u00e9\\/\\"" }  }' + CLOSER,
        [("f", '{ "a" :\t1.0e3 , "b":"\\u00e9\\/\\"" }')],
    ),
    "brackets and quotes in strings": (
        call("f", r'{"a": "}]\"{", "b": {"c\"}": [[], "\\"]}}'),
        [("f", r'{"a": "}]\"{", "b": {"c\"}": [[], "\\"]}}')],
    ),
    "markers in strings": (
        call("f", f'{{"a": "{CLOSER} {OPENER} <think>"}}') + "!",
        [("f", f'{{"a": "{CLOSER} {OPENER} <think>"}}'), ("text", "!")],
    ),
    "no arguments": (OPENER + '{"name": "f"}' + CLOSER, [("f", "{}")]),
    "an empty object": (call("f", "{ }"), [("f", "{ }")]),
    "null for arguments": (call("f", "null"), [("f", "{}")]),
    "an empty string for arguments": (call("f", ' ""'), [("f", "{}")]),
    "arguments that are no object": (call("f", '"{}"'), [("f", '"{}"')]),
    "a number for arguments": (call("f", "-1.5"), [("f", "-1.5")]),
    "a word that begins like null": (call("f", "nullable"), [("f", "nullable")]),
    "escapes in the name and in keys": (
        OPENER + '{"n\\u0061me": "s\\u00fc\\u0064", "\\u0061rguments": {}}' + CLOSER,
        [("süd", "{}")],
    ),
    "a key that comes twice": (
        OPENER + '{"name": "f", "arguments": {"a": 1}, "name": "g", "arguments": []}' + CLOSER,
        [("f", '{"a": 1}')],
    ),
    "arguments that come twice before the name": (
        OPENER + '{"arguments": {"a": 1}, "arguments": {}, "name": "f"}' + CLOSER,
        [("f", '{"a": 1}')],
    ),
    "a careless envelope": (
        OPENER + '{"name": "f", "arguments": {"a": True, "b": [1,],},}' + CLOSER,
        [("f", '{"a": True, "b": [1,],}')],
    ),
    "an envelope that was not closed": (
        OPENER + '{"name": "f", "arguments": {"a": 1}\n' + CLOSER + "\nb",
        [("f", '{"a": 1}'), ("text", "b")],
    ),
    "an envelope that goes on wrong": (
        OPENER + '{"name": "f", "arguments": {"a": 1}; b',
        [("f", '{"a": 1}'), ("text", "; b")],
    ),
    "a line break in a string": (call("f", '{"a": "1\n2"}'), [("f", '{"a": "1\n2"}')]),
    # What is no JSON is not made into some: it comes as it stands, up to the closer.
    "arguments that break": (
        call("f", "{\"a\": 'b'}") + " c",
        [("f", "{\"a\": 'b'}}"), ("text", "c")],
    ),
    "arguments that end too early": (
        OPENER + '{"name": "f", "arguments": {"a": [1' + CLOSER + "b",
        [("f", '{"a": [1'), ("text", "b")],
    ),
    "arguments without their key": (
        OPENER + '{"name": "f", {"a": 1} }' + CLOSER,
        [("f", '{"a": 1} }')],
    ),
    "a name and then the closer": (OPENER + '{"name": "f"' + CLOSER + "a", [("f", "{}"),
                                                                            ("text", "a")]),
    "a colon and then the closer": (OPENER + '{"name":"f","arguments": ' + CLOSER, [("f", "{}")]),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    text, expected = RULES[name]
    for parts in cuts(text):
        assert run(parts)[0] == expected, parts
        if name != "two without closers":
            assert run(parts, cut=True)[0] == expected, "a cut after the last call changes nothing"


PROSE = [
    "The <tool_call> tag opens one and </tool_call> closes it.",
    "<tool_call>",
    " <tool_call> ",
    "a <tool_call>\n{",
    'a <tool_call>\n{"name": "f',
    'a <tool_call> {"arguments": {"name": "f"}}</tool_call> b',
    "a <tool_call> {} </tool_call>",
    'a <tool_call>{"name": ""}</tool_call>',
    'a <tool_call>{"name": "\\ud800"}</tool_call>',
    'a <tool_call>{"name": "\\u00"}</tool_call>',
    'a <tool_call>{"name": 1}</tool_call>',
    'a <tool_call>{"name": {"name": "f"}}</tool_call>',
    'a <tool_call>{name: "f"}</tool_call>',
    'a <tool_call>["name", "f"]</tool_call>',
    'a <tool_call>[{"name": "f"}]</tool_call>',
    'a <tool_call>"name"</tool_call>',
    "a <tool_calls> or <tool-call>, never <tool_cal; 2 < 3 > 1",
    "a <tool_call> <tool_call> <tool_call",
    "a </tool_call> b </tool",
    'a < tool_call>{"name": "f"}</tool_call>',
    'a <tool_call>{"a" "name": "f"}',
    'a <tool_call>{"a": ], "name": "f"}',
    'a <tool_call>{, "name": "f"}',
    'a <tool_call>{"arguments": {"a": 1}; "name": "f"}',
]


@pytest.mark.parametrize("text", PROSE)
def test_what_only_looks_like_a_call_is_text(text: str) -> None:
    for parts in cuts(text):
        assert run(parts)[0] == [("text", text)], parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"a {OPENER}{WEATHER}", [("text", f"a {OPENER}"), SEEN[0]]),
        (f"a <tool_{WEATHER}", [("text", "a <tool_"), SEEN[0]]),
        (f'{OPENER}{{"name{WEATHER}', [("text", OPENER + '{"name'), SEEN[0]]),
        (f'{OPENER}{{"arguments": "{WEATHER}', [("text", OPENER + '{"arguments": "'), SEEN[0]]),
        (f"{OPENER} no {WEATHER} yes", [("text", f"{OPENER} no"), SEEN[0], ("text", "yes")]),
    ],
)
def test_a_call_after_what_only_looked_like_one(text: str, expected: Shown) -> None:
    for parts in cuts(text):
        assert run(parts)[0] == expected, parts


ENDS: list[tuple[str, Shown, Shown]] = [
    # (the text, after a stop, after a cut)
    ("a <tool_ca", [("text", "a <tool_ca")], [("text", "a <tool_ca")]),
    ("a <tool_call>", [("text", "a <tool_call>")], [("text", "a")]),
    ("a \n<tool_call>\n ", [("text", "a \n<tool_call>\n ")], [("text", "a")]),
    ('a<tool_call>{"name": "f', [("text", 'a<tool_call>{"name": "f')], [("text", "a")]),
    ('<tool_call>{"arguments": {}', [("text", '<tool_call>{"arguments": {}')], []),
    ('<tool_call>{"name": "f"', [("f…", "")], [("f…", "")]),
    ('<tool_call>{"name": "f", "arguments": ', [("f…", "")], [("f…", "")]),
    ('<tool_call>{"name": "f", "arguments": nu', [("f…", "nu")], [("f…", "nu")]),
    ('<tool_call>{"name": "f", "arguments": "', [("f…", '"')], [("f…", '"')]),
    ('<tool_call>{"name": "f", "arguments": {"a": "b ', [("f…", '{"a": "b ')],
     [("f…", '{"a": "b ')]),
    ('<tool_call>{"name": "f", "arguments": {"a": "\\', [("f…", '{"a": "\\')],
     [("f…", '{"a": "\\')]),
    ('<tool_call>{"name": "f", "arguments": {"a": 1}', [("f", '{"a": 1}')], [("f…", '{"a": 1}')]),
    ('<tool_call>{"name": "f", "arguments": {}}', [("f", "{}")], [("f…", "{}")]),
    ('<tool_call>{"name": "f"}', [("f", "{}")], [("f…", "")]),
    ('<tool_call>{"name": "f"} </tool_', [("f", "{}")], [("f…", "")]),
    ('<tool_call>{"arguments": {"a": 1}, "name": "f"', [("f", '{"a": 1}')], [("f…", '{"a": 1}')]),
    ('<tool_call>{"name": "f", "arguments": {\'a\' </tool_', [("f…", "{'a' </tool_")],
     [("f…", "{'a' </tool_")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "stopped", "cut"), ENDS)
def test_what_the_end_means(text: str, stopped: Shown, cut: Shown) -> None:
    for parts in cuts(text):
        assert run(parts)[0] == stopped, parts
        assert run(parts, cut=True)[0] == cut, parts


def test_arguments_stream_as_they_come() -> None:
    segmenter = Segmenter(HERMES)

    def feed(text: str) -> list[Any]:
        return segmenter.feed([Piece(text)])

    assert feed("Hi ") == [Text("Hi")]
    assert feed("<tool_call>") == []
    assert feed('{"name": "f') == []
    assert feed('"') == [CallOpened("function", "f")]
    assert feed(', "arguments": ') == []
    assert feed(' {"a": ') == [CallInput('{"a": ')]
    for text in ('"', "\\", '"', " ", "\n", "<", "/tool_call>", '"', " ", "}"):
        assert feed(text) == [CallInput(text)]
    assert feed("}\n") == []
    assert feed("</tool_call") == []
    assert feed(">") == [CallClosed()]
    assert feed(" a") == [Text("a")]
    assert feed(f"b {WEATHER}{WEATHER} c") == [
        Text("b"),
        *[CallOpened("function", "weather"), CallInput('{"city": "Bergen"}'), CallClosed()] * 2,
        Text("c"),
    ]
    assert feed(OPENER + '{"arguments": {"b": 1}') == []
    assert feed(', "name": "g') == []
    assert feed('"') == [CallOpened("function", "g"), CallInput('{"b": 1}')]


# --- reasoning ----------------------------------------------------------------------------------

THINKING: list[tuple[str, str, Shown]] = [
    ("think+hermes", f"<think>a</think>{WEATHER}", [("reasoning", "a"), SEEN[0]]),
    ("think+hermes", f"<think>a\n{WEATHER}\nb", [("reasoning", "a"), SEEN[0], ("text", "b")]),
    ("think+hermes", f"<think>\n{WEATHER}", SEEN[:1]),
    ("think+hermes", f"<think>a <tool_call> b</think>{SUM}",
     [("reasoning", "a <tool_call> b"), SEEN[1]]),
    ("think+hermes", "<think>\n<tool_call> a</think>b", [("reasoning", "<tool_call> a"),
                                                         ("text", "b")]),
    ("think+hermes", '<think><tool_call>{"</think>b', [("reasoning", '<tool_call>{"'),
                                                       ("text", "b")]),
    ("think+hermes", f"{WEATHER}</think>{SUM}<think>a</think>", [*SEEN, ("reasoning", "a")]),
    ("think_prefilled+hermes", WEATHER, SEEN[:1]),
    ("think_prefilled+hermes", f"\na.</think>\n{WEATHER}", [("reasoning", "a."), SEEN[0]]),
    ("think_prefilled+hermes", f"\na.{WEATHER}b", [("reasoning", "a."), SEEN[0], ("text", "b")]),
    ("think_prefilled+hermes", " <tool_call> a", [("reasoning", "<tool_call> a")]),
    ("mistral_think+hermes", f"[THINK]a{SUM}", [("reasoning", "a"), SEEN[1]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), THINKING)
def test_a_call_ends_reasoning_and_its_opener_alone_does_not(
    name: str, text: str, expected: Shown
) -> None:
    for parts in cuts(text):
        assert run(parts, family(name))[0] == expected, parts
        hidden = [item for item in expected if item[0] != "reasoning"]
        assert run(parts, family(name), reasoning=False)[0] == hidden, parts


def test_tokens_of_a_call_are_no_reasoning() -> None:
    tokens = ("<think>", "a", " b", "<tool_call>", '{"name": "f"', "}", "</tool_call>", "c")
    for steps in ([[Piece(t, (1,))] for t in tokens], [[Piece(t, (1,)) for t in tokens]]):
        segmenter = Segmenter(family("think+hermes"))
        segments = [segment for step in steps for segment in segmenter.feed(step)]
        assert segments[-1] == Text("c")
        assert Reasoning(" b") in segments or Reasoning("a b") in segments
        assert (segmenter.reasoning_tokens, segmenter.output_tokens) == (2, 8)
    # An opener that was text counts where it stands.
    segmenter = Segmenter(family("think+hermes"))
    segmenter.feed([Piece(t, (1,)) for t in ("<think>", "a", "<tool_call>", " b", "</think>")])
    assert segmenter.reasoning_tokens == 3


# --- what the request says ----------------------------------------------------------------------


def test_where_no_call_is_looked_for_markers_are_text() -> None:
    text = f"<think>a {OPENER} b</think> \n{WEATHER} c"
    expected = [("reasoning", f"a {OPENER} b"), ("text", f"{WEATHER} c")]
    for parts in cuts(text):
        assert run(parts, family("think+hermes"), calls=False)[0] == expected
        assert run([*parts, OPENER], family("think+hermes"), calls=False, cut=True)[0] == [
            expected[0],
            ("text", f"{WEATHER} c{OPENER}"),
        ]


def test_only_the_first_call_is_read_where_one_is_allowed() -> None:
    tokens = ["a", OPENER, '{"name": "f"', ', "arguments": {}', "}\n", CLOSER, "\n", "b", SUM]
    expected = [("text", "a"), ("f", "{}")]
    for size in range(1, len(tokens) + 1):
        segmenter = Segmenter(HERMES, parallel=False)
        segments: list[Any] = []
        for at in range(0, len(tokens), size):
            segments += segmenter.feed([Piece(t, (1,)) for t in tokens[at : at + size]])
            assert segmenter.ended == (at + size > 5)
        segments += segmenter.finish()
        assert shown(segments) == expected
        assert (segmenter.output_tokens, segmenter.stop) == (6, None)
    for parts in cuts("".join(tokens)):
        assert run(parts, parallel=False)[0] == expected


def test_the_only_call_ends_without_its_closer_where_other_text_begins() -> None:
    tokens = [OPENER, '{"name": "f"}', "\n", "b", "c"]
    for steps in ([[Piece(t, (1,))] for t in tokens], [[Piece(t, (1,)) for t in tokens]]):
        segmenter = Segmenter(HERMES, parallel=False)
        assert shown([s for step in steps for s in segmenter.feed(step)]) == [("f", "{}")]
        assert segmenter.ended
        assert segmenter.output_tokens == 3
    _, segmenter = run(tokens[:2], parallel=False)
    assert segmenter.ended
    assert segmenter.output_tokens == 2


# --- stop strings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stop", "expected", "hit"),
    [
        (WEATHER, "Bergen", SEEN[:1], None),
        (f"a {WEATHER}b.c", ".", [("text", "a"), SEEN[0], ("text", "b")], "."),
        (f"a.{WEATHER}", ".", [("text", "a")], "."),
        (f"ax{WEATHER}yb", "xy", [("text", "ax"), SEEN[0], ("text", "yb")], None),
        (f"a {OPENER} b", "_call", [("text", "a <tool")], "_call"),
        (f"a {OPENER} b. c", ".", [("text", f"a {OPENER} b")], "."),
        (f"a{WEATHER}", "<tool_call>", [("text", "a"), SEEN[0]], None),
        (WEATHER + CLOSER, CLOSER, SEEN[:1], CLOSER),
        (f"x {WEATHER}", "x ", [("text", "x"), SEEN[0]], None),
    ],
)
def test_stop_strings_are_not_looked_for_in_calls(
    text: str, stop: str, expected: Shown, hit: str | None
) -> None:
    for parts in cuts(text):
        found, segmenter = run(parts, stop=stop)
        assert (found, segmenter.stop) == (expected, hit), parts
        assert segmenter.ended == (hit is not None)


# --- cost ---------------------------------------------------------------------------------------


def test_deep_nesting_is_no_recursion() -> None:
    arguments = "[" * 100_000 + "]" * 100_000
    text = call("f", arguments)
    for parts in ([text], [text[at : at + 50] for at in range(0, len(text), 50)]):
        assert run(parts)[0] == [("f", arguments)]


ONE_MB = 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        call("f", json.dumps({"a": ("{}\\ <tool_call>" * ONE_MB)[:ONE_MB]})),
        call("f", "[" + "1, " * (ONE_MB // 3) + "1]"),
        OPENER + '{"name": "f", "arguments":' + " " * ONE_MB + "{}}" + CLOSER,
        OPENER + '{"arguments": "' + "x" * ONE_MB,
        OPENER * (ONE_MB // len(OPENER)),
        (OPENER + '{",":"') * (ONE_MB // 17),
        OPENER + "{'name" + " " * ONE_MB + "</tool",
        OPENER + '{"name": "f", "arguments": \'' + " }" * (ONE_MB // 2),
    ],
    ids=["string", "numbers", "spaces", "no name", "openers", "nested headers", "prose", "broken"],
)
def test_a_megabyte_is_read_in_time_that_grows_with_it(text: str) -> None:
    """In steps of 256 characters: what looks back over all of it at each would take minutes."""
    segmenter = Segmenter(HERMES)
    for at in range(0, len(text), 256):
        segmenter.feed([Piece(text[at : at + 256], (1,))])
    segmenter.finish()
    assert segmenter.output_tokens == -(-len(text) // 256)
