"""What cannot be compiled, or not in good time: one line that says why, and in a schema, where."""

from __future__ import annotations

import json
import time
from concurrent.futures import Future
from typing import Any

import pytest
from llguidance import LLMatcher

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.engines.torch.grammar.workers import Workers
from engines.torch.grammar.writing import a_grammar, vocabulary

LONGEST_S = 20.0
"""Far beyond what any of them takes: it tells a bound from none."""


def chain(count: int) -> dict[str, Any]:
    """Definitions that each hold the next."""
    links = {
        f"d{i}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}}}
        for i in range(count)
    }
    return {"$defs": {**links, f"d{count}": {"type": "null"}}, "$ref": "#/$defs/d0"}


def nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


def many(leaf: Any, count: int = 3_000) -> dict[str, Any]:
    """An object of many properties, the last of which is for a test to choose."""
    good = {f"p{i}": {"type": "boolean"} for i in range(count)}
    return {"type": "object", "properties": {**good, "z": leaf}, "required": ["z"]}


EMPTY = {"type": "integer", "minimum": 2, "maximum": 1}
LOOP = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
SCHEMAS: list[tuple[Any, str]] = [
    ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type: Invalid type: strin"),
    ({"items": {"anyOf": [{}, {"format": "zz", "type": "string"}]}}, "/items/anyOf/1/format"),
    ({"properties": {"a/b": {"items": {"type": "string", "pattern": "("}}}},
     "/properties/a~1b/items/pattern: unclosed group"),
    ({"properties": {"a": {"$ref": "#/$defs/x"}}}, "/properties/a/$ref"),
    ({"$ref": "http://example.com/schema"}, "/$ref"),
    ({"$defs": {"x": {"properties": {"y": 5}}}, "items": {"$ref": "#/$defs/x"}},
     "/$defs/x"),
    ({"properties": {"a": {"not": {}}}}, "/properties/a/not: Unimplemented"),
    ({"type": "integer", "minimum": 2, "maximum": 1}, "minimum"),
    ({"properties": {"a": {"type": "integer", "multipleOf": 10_000_019}}},
     "/properties/a/multipleOf"),
    ({"allOf": [{"multipleOf": 997}, {"multipleOf": 991}]}, "/multipleOf"),
    ({"type": "number", "multipleOf": 1e-30}, "18 decimal places"),
    ({"enum": [1, 2**53 + 1]}, "/enum: 9e+15 is too large"),
    ({"enum": [10**400]}, "/enum: 1e+400 is too large"),
    ({"properties": {"a": {"const": -(2**60)}}}, "/properties/a/const: -1e+18 is too large"),
    (many({"type": "string", "pattern": "("}), ": /properties/z/pattern: unclosed group"),
    (many({"items": {"type": "int"}}), ": /properties/z/items/type: Invalid type"),
    (many(EMPTY), ": /properties/z: Unsatisfiable schema: minimum"),
    (many(many(EMPTY, 2)), ": /properties/z/properties/z: Unsatisfiable schema: minimum"),
    (many({"type": "object", "properties": {"a": False, "b": EMPTY}, "required": ["b"]}),
     ": /properties/z/properties/b: Unsatisfiable schema: minimum"),
    ({"anyOf": [*({"const": i} for i in range(1_000)), {"type": "int"}]},
     ": /anyOf/1000/type: Invalid type"),
    ({"properties": {"b": {"allOf": [
        {"type": "string", "pattern": f"a.{{{i}}}b"} for i in range(10)]}}},
     ": /properties/b: its patterns together are too much to be compared"),
    (LOOP, "no text that holds to it ever ends"),
    ({"$ref": "#"}, "no text that holds to it ever ends"),
    ({"properties": {"a": LOOP | {"properties": {"next": {"$ref": "#/properties/a"}}}},
      "type": "object", "required": ["a"]}, "ever ends"),
    ({"type": "array", "minItems": 1, "items": {"$ref": "#"}}, "ever ends"),
    ({"properties": {"a": {"type": "string", "pattern": "a" * 20_000}}}, "16384 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "told"), SCHEMAS)
def test_schemas(schema: Any, told: str) -> None:
    with pytest.raises(GrammarRefused) as refusal:
        a_grammar("json_schema", json.dumps(schema))
    message = str(refusal.value)
    assert message.startswith("the schema does not compile: ")
    assert told in message
    assert "\n" not in message


OTHERS = [
    ("regex", "(", "unclosed group"),
    ("regex", "a\\", "a backslash that escapes nothing"),
    ("regex", "(?=a)b", "look-around"),
    ("regex", r"(a)\1", "backreferences"),
    ("regex", "a" * 1_000_000, "1000000 bytes; at most 16384"),
    ("regex", "(x{1000}){1000}", "it is too large"),
    ("regex", "(a|b)?" * 2_000, "it is too large"),
    ("regex", "(" * 8_000 + "a" + ")" * 8_000, "nest"),
    ("regex", "x{0}", "no text but the empty one"),
    ("regex", "[^\\x00-\\U0010FFFF]", "no text holds to it"),
    ("choice", "[]", "there must be choices"),
    ("choice", '["a", ""]', "none may be empty"),
    ("choice", '["\ud800"]', "surrogate"),
    ("lark", "start: a b ??", "Expected"),
    ("lark", 'a: "b"', "no start rule"),
    ("lark", "start: start", "the rule start: no text that holds to it ever ends"),
    ("lark", 'start: "a" start', "no text that holds to it ever ends"),
    ("lark", 'start: "a', "at 1(10): what comes next cannot be read"),
    ("json_schema", "false", "no text holds to it"),
    ("lark", 'start: %json {"multipleOf": 10000019}', "%json is not taken"),
    ("lark", '%llguidance {"no_forcing": true}\nstart: "a"', "%llguidance is not taken"),
    ("lark", "start: " + "(" * 20_000 + '"a"' + ")" * 20_000, "nested"),
    ("gbnf", "root ::= (((", "not GBNF"),
    ("gbnf", 'x ::= "a"', "No 'root' rule"),
    ("gbnf", "root ::= " + "(" * 20_000, "not GBNF"),
    ("json_schema", nested(300), "recursion limit"),
    ("json_schema", nested(20_000), "nested too deeply"),
    ("json_schema", " " * 300_000, "300000 bytes"),
]


@pytest.mark.parametrize(("kind", "text", "told"), OTHERS)
def test_others_in_bounded_time(kind: str, text: str, told: str) -> None:
    began = time.monotonic()
    with pytest.raises(GrammarRefused) as refusal:
        a_grammar(kind, text)
    assert time.monotonic() - began < LONGEST_S
    message = str(refusal.value)
    assert told in message
    assert len(message) < 600
    assert "\n" not in message


ENDING = [
    {"properties": {"next": {"$ref": "#"}}, "type": "object"},
    {"type": ["object", "null"], "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
    {"type": "array", "items": {"$ref": "#"}},
    {"anyOf": [{"type": "array", "minItems": 1, "items": {"$ref": "#"}}, {"type": "null"}]},
    {"type": "object", "required": ["a"], "properties": {"a": {"const": {"a": 1}}}},
]


@pytest.mark.parametrize("schema", ENDING)
def test_recursion_that_can_end_is_taken(schema: Any) -> None:
    a_grammar("json_schema", json.dumps(schema))


LARGE = [
    ("json_schema", json.dumps({"enum": [f"value-{i}" for i in range(10_000)]})),
    ("choice", json.dumps([f"choice-{i}" for i in range(10_000)])),
    ("json_schema", json.dumps({"properties": {f"p{i}": {"type": "null"} for i in range(1_000)}})),
    ("json_schema", nested(100)),
    ("regex", "(a|aa)+b"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), LARGE)
def test_what_is_large_and_compiles(kind: str, text: str) -> None:
    assert not a_grammar(kind, text).error


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json_schema", json.dumps(chain(2_500))),
        ("lark", "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(3_000)) + 'r3000: "a"'),
    ],
)
def test_long_chains_of_references_do_not_end_the_process(kind: str, text: str) -> None:
    """They overflow the stack of a usual thread, in which nothing can be caught."""
    outcome: Future[str] = Future()
    Workers(1).put(lambda: outcome.set_result(a_grammar(kind, text).error))
    assert outcome.result(LONGEST_S) == ""


def test_a_part_that_cannot_be_followed_is_named() -> None:
    """It compiles; what gives up is the library, when it is written."""
    dear = GrammarSpec(kind="json_schema", text=json.dumps({"items": {"properties": {
        "a": {"type": "null"}, "b": {"type": "boolean"}, "c": {"const": "here"}}}}))  # fmt: skip

    def gives_up(matcher: LLMatcher, _: GrammarVocabulary) -> None:
        here = vocabulary().guide.tokenize_str('"here"')
        whole = vocabulary().guide.tokenize_str('[{"c":"here"}]')
        inner = vocabulary().guide.tokenize_str('{"c":"here"}')
        for text in (here, inner, whole):
            if matcher.deep_copy().validate_tokens(text) == len(text):
                raise GrammarRefused("lexer error: too many states: 50000 >= 50000")

    with pytest.raises(GrammarRefused, match="/items/properties/c: it is too large"):
        compiled(dear, vocabulary(), gives_up)
