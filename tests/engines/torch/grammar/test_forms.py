"""Every kind of form: what is drawn from it holds to it, and ends."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.engines.torch.grammar.refused import GrammarRefused
from engines.torch.grammar.writing import EOS, a_grammar, allowed, takes, vocabulary, write

SEEDS = range(6)

names = st.text('abcdé"\\ /~', min_size=1, max_size=4)
exact = st.integers(-(2**53), 2**53)
scalars = st.one_of(
    st.builds(lambda least, more: {"type": "integer", "minimum": least, "maximum": least + more},
              st.integers(-1000, 1000), st.integers(0, 5000)),
    st.builds(lambda most: {"type": "string", "maxLength": most}, st.integers(0, 5)),
    st.builds(lambda values: {"enum": values},
              st.lists(st.one_of(names, exact, st.none(), st.booleans()),
                       min_size=1, max_size=4, unique_by=repr)),
    st.builds(lambda value: {"const": value}, names),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["boolean", "null"]},
                     {"type": "string", "pattern": "^[a-c]{1,3}x?$"},
                     {"type": "string", "format": "date"}]),
)  # fmt: skip


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    @st.composite
    def made(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(names, inner, max_size=3))
        return {
            "type": "object",
            "properties": properties,
            "required": draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
            if properties
            else [],
            "additionalProperties": False,
        }

    return made()


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda items, least, more: {
            "type": "array", "items": items, "minItems": least, "maxItems": least + more,
        },
        inner, st.integers(0, 2), st.integers(0, 2),
    )  # fmt: skip


schemas = st.recursive(
    scalars,
    lambda inner: st.one_of(
        objects(inner),
        arrays(inner),
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(schemas, st.integers(0, 2**32))
def test_what_is_drawn_from_a_schema_is_an_instance_of_it(schema: Any, seed: int) -> None:
    text, ended = write(a_grammar("json_schema", json.dumps(schema)), seed)
    assert ended
    jsonschema.validate(json.loads(text), schema)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer", "minimum": 0, "maximum": 9},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_schema_that_refers_to_itself(seed: int) -> None:
    text, ended = write(a_grammar("json_schema", json.dumps(TREE)), seed, most=20_000)
    assert ended
    jsonschema.validate(json.loads(text), TREE)


def test_any_object() -> None:
    assert takes(a_grammar("json_object"), '{"a": [1, null, {"b": "c"}]}')
    for text in ("[1]", '"a"', "1"):
        assert not takes(a_grammar("json_object"), text)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pattern", [r"\d{3}-\d{4}", r"(ab|a/b)?c+d", r"[^x]y", r"\w\s[\d-]"])
def test_regular_expressions(pattern: str, seed: int) -> None:
    text, ended = write(a_grammar("regex", pattern), seed)
    assert ended
    assert re.fullmatch(pattern, text.decode(), re.ASCII)


@pytest.mark.parametrize("choice", ["yes", "yesterday", 'a"\\b', "\n", "né", "/x/"])
def test_choices(choice: str) -> None:
    choices = json.dumps(["yes", "yesterday", 'a"\\b', "\n", "né", "/x/"], ensure_ascii=False)
    grammar = a_grammar("choice", choices)
    assert takes(grammar, choice)
    assert grammar.finished or EOS in allowed(grammar)
    assert not takes(a_grammar("choice", choices), choice + "!")


LARK = """
start: item (", " item)*
item: NAME "=" NUMBER
NAME: /[a-z]{1,3}/
NUMBER: /[0-9]{1,2}/
"""
GBNF = """
# comment
root ::= item (", " item)*
item ::= some-name "=" [0-9] [0-9]?
some-name ::= [a-z] [a-z]? [a-z]?
"""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "text"), [("lark", LARK), ("gbnf", GBNF)])
def test_grammars(kind: str, text: str, seed: int) -> None:
    item = r"[a-z]{1,3}=[0-9]{1,2}"
    written, _ = write(a_grammar(kind, text), seed, most=40)
    assert re.match(rf"{item}(, {item})*", written.decode())


GBNF_JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""


def test_a_usual_grammar_of_json() -> None:
    for text in ('{"a": [1, -2.5, "x\\n\\u00e9"]}', "{}", '{"a": {"b": null}}'):
        assert takes(a_grammar("gbnf", GBNF_JSON), text), text
    for text in ("[1]", '{"a": 01}', '{"a"}', "{'a': 1}"):
        assert not takes(a_grammar("gbnf", GBNF_JSON), text), text


def test_white_space_between_the_parts_of_a_json_text_has_a_bound() -> None:
    schema = json.dumps({"type": "array", "items": {"type": "null"}, "maxItems": 1})
    assert takes(a_grammar("json_schema", schema), "[\n" + " " * 31 + "null ]")
    assert not takes(a_grammar("json_schema", schema), "[" + " " * 33)


def test_control_tokens_are_no_text() -> None:
    special = set(load_special())
    grammar = a_grammar("regex", ".{1,20}")
    assert not special & set(allowed(grammar))
    assert grammar.advance(vocabulary().ids[b"a"])
    assert special & set(allowed(grammar)) == {EOS}


def load_special() -> list[int]:
    guide = vocabulary().guide
    return [token for token in range(768) if guide.is_special_token(token)]


def test_a_finished_text_is_finished_at_once() -> None:
    """So no end has to be drawn, which the request may keep from being drawn."""
    grammar = a_grammar("json_schema", '{"type":"object","additionalProperties":false}')
    assert takes(grammar, "{}")
    assert grammar.finished
    assert not grammar.error


def test_a_token_that_is_not_allowed_is_told() -> None:
    grammar = a_grammar("regex", "ab")
    assert not grammar.advance(vocabulary().ids[b"c"])
    assert grammar.error
    assert not grammar.finished
    assert not grammar.advance(vocabulary().ids[b"a"])


def test_only_a_strict_schema_is_refused_for_what_cannot_be_held_to() -> None:
    schema = json.dumps({"type": "array", "uniqueItems": True, "items": {"const": 1}})
    with pytest.raises(GrammarRefused, match="/uniqueItems"):
        a_grammar("json_schema", schema, strict=True)
    assert takes(a_grammar("json_schema", schema, strict=False), "[1,1]")
