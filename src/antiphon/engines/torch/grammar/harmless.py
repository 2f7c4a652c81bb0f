"""Forms that are known to compile at once, told by what they are made of."""

from __future__ import annotations

import json
import re
from typing import Any

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.nodes import placed_forms

MOST_PARTS = 300
"""Subschemas and strings to choose from in a form that is not tried first."""
MOST_BYTES = 16 * 1024
LONGEST_REGEX = 100
MOST_REPEATS = 1_000
"""Of a regular expression, all counts multiplied; of a schema, each by itself."""

_NOTES = frozenset(
    {"title", "description", "default", "examples", "$schema", "$defs", "definitions"}
)
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength"})
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_PLAIN = _COUNTS | _BOUNDS | {"type", "required", "properties", "items", "additionalProperties"}


def harmless(form: GrammarSpec) -> bool:
    """Whether it need not be tried in a process of its own.

    What is dear is an intersection of texts (``allOf``, or ``anyOf`` beside other keywords),
    patterns, large counts and remainders; a form that has any of them is not harmless. Wrong forms
    may be.
    """
    if form.kind == "json_object":
        return True
    if len(form.text) > MOST_BYTES:
        return False
    if form.kind == "regex":
        counts = 1
        for number in re.findall(r"\d+", form.text):
            counts *= max(int(number), 1) if len(number) < 6 else MOST_REPEATS + 1
        small = len(form.text) <= LONGEST_REGEX and counts <= MOST_REPEATS
        return small and not re.search(r"\\[pP]", form.text)
    if form.kind not in ("json_schema", "choice", "calls"):
        return False
    try:
        value = json.loads(form.text)
    except (ValueError, RecursionError):
        return False
    if form.kind == "calls":
        return all(map(harmless, (part for _, part in placed_forms(value))))
    if form.kind == "choice":
        return isinstance(value, list) and len(value) <= MOST_PARTS
    return _harmless_schema(value)


def _harmless_schema(schema: Any) -> bool:
    open_parts, parts = [schema], 0
    while open_parts:
        part = open_parts.pop()
        parts += 1
        if parts > MOST_PARTS:
            return False
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            return False
        inner = _inner(part)
        if inner is None:
            return False
        open_parts += inner
    return True


def _inner(part: dict[str, Any]) -> list[Any] | None:
    """The parts of a part; None if it says anything that may be dear."""
    said = part.keys() - _NOTES
    if not (said <= _PLAIN or said in ({"$ref"}, {"anyOf"}) or said <= {"type", "enum", "const"}):
        return None
    if any(not _small(part[key]) for key in said & _COUNTS):
        return None
    if any(not isinstance(part[key], int | float) for key in said & _BOUNDS):
        return None
    found: list[Any] = []
    for key in ("$defs", "definitions", "properties"):
        named = part.get(key, {})
        if not isinstance(named, dict):
            return None
        found += named.values()
    either = part.get("anyOf", [])
    if not isinstance(either, list) or len(either) > 8:
        return None
    found += either
    found += (part[key] for key in ("items", "additionalProperties") if key in part)
    choices = part.get("enum", [])
    if not isinstance(choices, list):
        return None
    # A value to choose counts like a part.
    found += (True for _ in choices)
    return found


def _small(count: object) -> bool:
    return isinstance(count, int) and count <= MOST_REPEATS
