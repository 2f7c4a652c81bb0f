"""What compiles can be followed, or is refused before anybody follows it."""

from __future__ import annotations

import json
import time
from itertools import count
from typing import Any

import pytest

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.harmless import harmless
from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.walk import walk
from engines.torch.grammar.writing import a_grammar, takes, vocabulary


def objects(number: int) -> dict[str, Any]:
    """One of many objects, all alike but in their last property."""
    kinds = [
        {"type": "object", "properties": {f"k{i}": {"type": "integer"} for i in range(19)}
         | {f"last{one}": {"type": "integer"}}}
        for one in range(number)
    ]  # fmt: skip
    return {
        "type": "object", "properties": {"o": {"anyOf": kinds}}, "required": ["o"],
        "additionalProperties": False,
    }  # fmt: skip


@pytest.mark.parametrize("number", [40, 150])
def test_one_of_many_objects_can_be_written(number: int) -> None:
    text = json.dumps(objects(number))
    assert takes(a_grammar("json_schema", text), '{"o": {"k0": 1, "k1": 2, "k18": 3}}')
    last = f'{{"o": {{"k3": 1, "last{number - 1}": 2}}}}'
    assert takes(a_grammar("json_schema", text), last)


UNFOLLOWED = [
    ("regex", "((a{1,100}){1,100}){1,100}"),
    ("regex", r"[\p{L}\p{N}]{1,500}" * 200),
    ("lark", 'start: (("a"~1..1000)~1..1000)~1..1000'),
    ("choice", json.dumps(["a" * 200_000, "b"])),
]


@pytest.mark.parametrize(("kind", "text"), UNFOLLOWED)
def test_what_would_fail_after_some_tokens_is_refused(kind: Any, text: str) -> None:
    form = GrammarSpec(kind=kind, text=text)
    assert not harmless(form)
    with pytest.raises(GrammarRefused):
        walk(compiled(form, vocabulary()), vocabulary())


def test_what_is_too_slow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    form = GrammarSpec(kind="regex", text="[a-z]{9}")
    with pytest.raises(GrammarRefused, match="too long to be followed"):
        walk(compiled(form, vocabulary()), vocabulary())


def test_a_walk_leaves_the_matcher_at_its_start() -> None:
    matcher = compiled(GrammarSpec(kind="regex", text="ab{9}"), vocabulary())
    walk(matcher, vocabulary())
    assert matcher.consume_token(vocabulary().ids[b"a"])


DEAR: list[Any] = [
    {"type": "string", "pattern": "a"},
    {"properties": {"a": {"items": {"format": "date", "type": "string"}}}},
    {"multipleOf": 7},
    {"allOf": [{}, {}]},
    {"anyOf": [{}, {}], "properties": {}},
    {"anyOf": [{}] * 9},
    {"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {}}},
    {"type": "string", "maxLength": 100_000},
    {"properties": {f"p{i}": {} for i in range(400)}},
    {"enum": [f"v{i}" for i in range(400)]},
    {"patternProperties": {"a": {}}},
    {"properties": {"not-a-keyword": {"oneOf": [{}, {}]}}},
    [], {"properties": []}, {"anyOf": 5},
]  # fmt: skip


@pytest.mark.parametrize("schema", DEAR)
def test_what_may_be_dear_is_tried_first(schema: Any) -> None:
    assert not harmless(GrammarSpec(kind="json_schema", text=json.dumps(schema)))


PLAIN: list[Any] = [
    {"type": "object", "properties": {"pattern": {"type": "string"}, "allOf": {"type": "null"}},
     "required": ["pattern"], "additionalProperties": False},
    {"$defs": {"a": {"enum": [1, 2]}}, "type": "array", "items": {"$ref": "#/$defs/a"}},
    {"type": "integer", "minimum": 1, "maximum": 10, "description": "some"},
    {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "A"},
]  # fmt: skip


@pytest.mark.parametrize("schema", PLAIN)
def test_what_everybody_sends_is_not(schema: Any) -> None:
    form = GrammarSpec(kind="json_schema", text=json.dumps(schema), strict=True)
    assert harmless(form)
    walk(compiled(form, vocabulary()), vocabulary())
