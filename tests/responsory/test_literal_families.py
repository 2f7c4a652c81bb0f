"""Calls whose arguments are literals of Python or of Gemma, against Python's own reader of them."""

from __future__ import annotations

import ast
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Text
from responsory.segments import Piece, Segmenter, family
from responsory.segments.formats.gemma4 import GemmaCall
from responsory.segments.formats.python_literal import PythonLiteral
from responsory.segments.formats.pythonic import LFM2, LIST
from responsory.segments.tools import Tool, Tools
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    Matching,
    OneOf,
    Rule,
    Rules,
    TextWithout,
    Times,
    Written,
)
from responsory.testing.strategies import splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ADD = Tool("add", parameters={"type": "object", "properties": {"a": {}, "b": {}}})
TOOLS = Tools([ADD])


def read(parts: Iterable[str], name: str, *, cut: bool = False, look: bool = True) -> list[Any]:
    """Texts; and calls as (name, arguments, whether closed)."""
    segmenter = Segmenter(family(name), tools=TOOLS)
    read: list[Any] = []
    for part in [*parts, None]:
        seen = segmenter.glance(part) if part is not None and look else None
        if part is None:
            found = segmenter.finish(cut=cut)
        else:
            found = segmenter.feed([Piece(part, (1,))]) if seen is None else [seen]
        for says in found:
            match says:
                case CallOpened():
                    read.append((says.name, "", False))
                case CallInput():
                    read[-1] = (read[-1][0], read[-1][1] + says.text, False)
                case CallClosed():
                    read[-1] = (*read[-1][:2], True)
                case Text() | Reasoning():
                    before = read.pop() if read and isinstance(read[-1], str) else ""
                    read.append(before + says.text)
    return read


def in_all_cuts(text: str, name: str, *, cut: bool = False) -> list[Any]:
    """What is read of it whole, which is the same by character and in any two parts."""
    whole = read([text], name, cut=cut, look=False)
    assert read(list(text), name, cut=cut) == whole
    for at in range(1, len(text)):
        assert read([text[:at], text[at:]], name, cut=cut) == whole, at
    return whole


# --- values, written and read --------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("a'\"\\{}[](),:=<|> \n\t\x00\x7fé😀\u2028_09"), max_size=6)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,4}", fullmatch=True)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | TEXTS


def values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    )


def gemma(value: Any) -> str:
    """As the template of the model writes it."""
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, list):
        return f"[{','.join(map(gemma, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{gemma(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)


@given(st.dictionaries(NAMES, values(TEXTS), max_size=3), st.data())
@settings(max_examples=60)
def test_what_python_writes_is_read(arguments: dict[str, Any], data: st.DataObject) -> None:
    inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    called = ("f", json.dumps(arguments, ensure_ascii=False), True)
    calls = f"[f({inside}), f({inside})]"
    assert read(data.draw(splits(calls)), "pythonic") == [called, called]
    tagged = f"Hm. <|tool_call_start|>{calls}<|tool_call_end|> So."
    assert read(data.draw(splits(tagged)), "lfm2") == ["Hm.", called, called, "So."]


@given(st.dictionaries(NAMES, values(NAMES), max_size=3), st.data())
@settings(max_examples=60)
def test_what_gemma_writes_is_read(arguments: dict[str, Any], data: st.DataObject) -> None:
    call = f"<|tool_call>call:f{gemma(arguments)}<tool_call|>"
    called = ("f", json.dumps(arguments, ensure_ascii=False), True)
    assert read(data.draw(splits(f"Hm.{call}{call}")), "gemma4") == ["Hm.", called, called]


BITS = ["a", "é", "'", '"', "\\", "\n", "n", "x4", "x41", "u00fc", "U0001F600", "7", "101", "\\\\",
        "\\'", '\\"', "\\\n", "'''", '"""', " ", "r'", "b"]  # fmt: skip


@given(st.lists(st.sampled_from(BITS), max_size=6), st.sampled_from(["'", '"', "'''", '"""']),
       st.sampled_from(["", "r", "u", "R"]), st.data())  # fmt: skip
@settings(max_examples=150)
def test_strings_are_those_of_python(
    bits: list[str], quote: str, prefix: str, data: st.DataObject
) -> None:
    source = prefix + quote + "".join(bits) + quote
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(source)
    except (SyntaxError, ValueError):
        return
    if any(mark in source for mark in ("b'", 'b"', "r'''", 'r"""')) or source[:2] == "r ":
        return  # strings of other kinds that go on with this one
    if not isinstance(value, str) or "r'" in source[1:]:
        return
    called = read(data.draw(splits(f"[f(a={source})]")), "pythonic")
    assert [(name, json.loads(text), closed) for name, text, closed in called] == [
        ("f", {"a": value}, True)
    ]


def test_other_literals() -> None:
    """Numbers as Python has them, tuples, adjacent strings, and brackets around one value."""
    written = {
        "-7": -7, "+7": 7, "1_000": 1000, ".5": 0.5, "5.": 5.0, "1e5": 1e5, "-1.5E-3": -1.5e-3,
        "0x1F": 31, "0b101": 5, "0o17": 15, "0x" + "f" * 64: 16**64 - 1, "(1, 2)": [1, 2],
        "(1,)": [1], "()": [], "(1)": 1, "((1, (2)),)": [[1, 2]], "('a' \"b\"\n'c')": "abc",
        "{'k': (1, [2,],), }": {"k": [1, [2]]}, "None": None, "true": True, "null": None,
        "Oslo": "Oslo", "0x": "0x", "0b12": "0b12", "0x_": "0x_", "r'\\''": "\\'", "'\\d'": "\\d",
    }  # fmt: skip
    for source, value in written.items():
        for form, name in (("[f(a={})]", "pythonic"), ("[f(a=[{}])]", "pythonic")):
            (called,) = in_all_cuts(form.format(source), name)
            expected = value if "[{" not in form else [value]
            assert (json.loads(called[1]), called[2]) == ({"a": expected}, True), source
    long = "0x" + "f" * 4000
    assert read([f"[f(a={long})]"], "pythonic") == [("f", json.dumps({"a": long}), True)]


# --- the forms -----------------------------------------------------------------------------------

IN_BOTH = '<|tool_call_start|>[{"name": "f", "arguments": {"a":1}}, g(b=2)]<|tool_call_end|>.'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pythonic", " \n[ f(a=1),g()]\n", [("f", '{"a": 1}', True), ("g", "{}", True)]),
        ("pythonic", "[add(1, b='x')]", [("add", '{"a": 1, "b": "x"}', True)]),
        ("pythonic", "[f()] So.", [("f", "{}", True), "So."]),
        ("pythonic", "So: [f()]", ["So: [f()]"]),
        ("pythonic", "[note (a)] is", ["[note (a)] is"]),
        ("pythonic", "[1(a=1)]", ["[1(a=1)]"]),
        ("pythonic", "[f", ["[f"]),
        ("pythonic", "Hm.<|python_start|>[f(a=[])]<|python_end|>",
         ["Hm.", ("f", '{"a": []}', True)]),
        ("lfm2", IN_BOTH, [("f", '{"a":1}', True), ("g", '{"b": 2}', True), "."]),
        ("lfm2", "A <|tool_call_start|> is it.", ["A <|tool_call_start|> is it."]),
        # What is no literal is shown as it stands, up to the closer, and does not parse.
        ("lfm2", "<|tool_call_start|>[f(a=g(1))]<|tool_call_end|> So.",
         [("f", '{"a": "g"(1))]', True), "So."]),
        ("pythonic", "[f(1)]", [("f", "1)]", False)]),
        ("gemma4", "<|tool_call>call:f{a:b c,t:12:30}<tool_call|>",
         [("f", '{"a": "b c", "t": "12:30"}', True)]),
        ("gemma4", '<|tool_call>call:f{<|"|>a:b<|"|>:0x}', [("f", '{"a:b": "0x"}', True)]),
        ("gemma4", "<|tool_call>call:f {}", [("f", "{}", True)]),
        ("gemma4", "<|tool_call>f{}", ["<|tool_call>f{}"]),
        ("gemma4_thought+gemma4", "<|channel>thought\nHm.<|tool_call>call:f{}<tool_call|>",
         ["Hm.", ("f", "{}", True)]),
    ],
)  # fmt: skip
def test_forms(name: str, text: str, expected: list[Any]) -> None:
    assert in_all_cuts(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text", "whole"),
    [
        ("pythonic", "[f(a='é\\x41', b=[1, (2, 3)], c={'k': -5})]",
         '{"a": "éA", "b": [1, [2, 3]], "c": {"k": -5}}'),
        ("gemma4", '<|tool_call>call:f{a:<|"|>x<y<|"|>,b:[1,{k:true}]}<tool_call|>',
         '{"a": "x<y", "b": [1, {"k": true}]}'),
    ],
)  # fmt: skip
def test_a_call_that_is_cut_anywhere_is_a_prefix(name: str, text: str, whole: str) -> None:
    for end in range(len(text)):
        shown = read([text[:end]], name, cut=True, look=False)
        assert read(list(text[:end]), name, cut=True) == shown
        for _, arguments, closed in (one for one in shown if not isinstance(one, str)):
            assert whole.startswith(arguments)
            assert not closed or arguments == whole


def test_long_and_deep_arguments_take_their_time_alone() -> None:
    deep, long = 1000, 200_000
    for left, right, inner in (("[", "]", ""), ("(", ",)", "1"), ("{'k':", "}", "1")):
        text = f"[f(a={left * deep}{inner}{right * deep})]"
        ((_, arguments, closed),) = read(list(text), "pythonic")
        assert closed
        assert arguments.count("[" if left != "{'k':" else "{") >= deep
    text = f"<|tool_call>call:f{{a:{'[' * deep}{']' * deep}}}<tool_call|>"
    assert read(list(text), "gemma4") == [("f", f'{{"a": {"[" * deep}{"]" * deep}}}', True)]
    # Many values in one piece: each is found without a look at all that follows.
    many = ",".join("1" * 5 for _ in range(long // 6))
    ((_, arguments, _),) = read([f"<|tool_call>call:f{{a:[{many}]}}<tool_call|>"], "gemma4")
    assert len(json.loads(arguments)["a"]) == long // 6
    # A word or a key without an end breaks the arguments, wherever it is cut.
    for start in ("", "a:"):
        text = f"<|tool_call>call:f{{{start}{'x' * 5000}:1}}<tool_call|>."
        assert read([text], "gemma4", look=False) == read(list(text), "gemma4")


# --- what a form writes is what its reader reads -------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "kind": {"enum": ["a'b", 1, True, None, [1, "x"], {"k": 2}]},
        "many": {"type": "array", "items": {"type": ["number", "boolean"]}},
        "more": {"type": "object", "properties": {"deep": {"type": "null"}, "any": {}}},
    },
    "required": ["days", "city"],
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
FORMS = (("pythonic", "[", LIST), ("lfm2", "<|tool_call_start|>", LFM2),
         ("gemma4", "<|tool_call>", GemmaCall()))  # fmt: skip


def sample(node: Written, data: st.DataObject, rules: Mapping[str, Written], depth: int = 0) -> str:
    """A text of the grammar."""
    match node:
        case Exactly(text):
            return text
        case JsonText(schema, _, _):
            whole = (schema or {}).get("type") == "integer"
            return json.dumps(data.draw(st.integers() if whole else FLOATS))
        case Matching(regex):
            return data.draw(st.from_regex(regex, fullmatch=True))
        case TextWithout():
            return data.draw(st.text("a<|\"\\'é\n", max_size=4))
        case InOrder(parts):
            return "".join(sample(part, data, rules, depth) for part in parts)
        case OneOf(parts):
            part = parts[data.draw(st.integers(0, len(parts) - 1)) if depth < 6 else 0]
            return sample(part, data, rules, depth + 1)
        case Times(part, least, most):
            most = min(least + 2, most or least + 2) if depth < 6 else least
            times = data.draw(st.integers(least, max(least, most)))
            return "".join(sample(part, data, rules, depth + 1) for _ in range(times))
        case Rule(name):
            return sample(rules[name], data, rules, depth + 1)
        case Rules(start, inner):
            return sample(start, data, {**rules, **inner}, depth)
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize(("name", "opener", "form"), FORMS)
@given(data=st.data())
@settings(max_examples=25)
def test_what_is_generated_is_read(name: str, opener: str, form: Any, data: st.DataObject) -> None:
    tools = [Tool("get", parameters=SCHEMA), Tool("ping", parameters=NOTHING), Tool("any"),
             Tool("note", "custom")]  # fmt: skip
    text = opener + sample(form.written(tools, most=3), data, {})
    calls = read([text], name)
    assert 1 <= len(calls) <= 3
    for called, arguments, closed in calls:
        assert closed, text
        value = json.loads(arguments, strict=False)
        if called == "get":
            assert {"days", "city"} <= value.keys() <= SCHEMA["properties"].keys()
            assert isinstance(value["days"], int)
            assert isinstance(value["city"], str)
            if "kind" in value:
                assert value["kind"] in SCHEMA["properties"]["kind"]["enum"]
        elif called == "note":
            assert isinstance(value["input"], str)
        else:
            assert isinstance(value, dict)
            assert called == "any" or value == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{'k' 1 2}", '{"k" 1 2}'),
        ("[1,  }", "[1,  }"),
        ("[1  2]", "[1  2]"),
        ("{'a' : 1 , )", '{"a": 1 , )'),
        ("[1 ,,2]", "[1 ,,2]"),
        (f"[{'x' * 5000}]", f"[{'x' * 5000}]"),
        (f"{'y' * 4097} ", f"{'y' * 4097} "),
    ],
    ids=range(7),
)
def test_of_what_breaks_nothing_is_lost(text: str, told: str) -> None:
    for pieces in ([text], list(text), [text[:3], text[3:]]):
        literal, out = PythonLiteral(), ""
        for piece in pieces:
            at, read = literal.read(piece, 0) if not literal.broken else (0, "")
            out += read + piece[at:]
        assert out == told
