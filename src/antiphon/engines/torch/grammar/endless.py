"""Schemas that no finite text can match: an object that has to hold another of its own kind.

The compiler takes them, and a model would write until it is cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from antiphon.engines.torch.grammar.schema import escaped

SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
MOST_ROUNDS = 64
"""Rounds over all parts. Where they do not do, the schema is let pass."""

_SEVERAL = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE = ("items", "additionalProperties")
_NAMED = ("properties", "$defs", "definitions")


def endless(schema: Any) -> str | None:
    """JSON pointer of an object that can have no end; None if the whole schema can be met.

    Told by a fixed point: a part can end if what it must hold can. ``not``, ``if`` and patterns of
    names are not looked at.
    """
    parts = subschemas(schema)
    ending: set[str] = set()
    for _ in range(MOST_ROUNDS):
        before = len(ending)
        # The innermost first, so that one round does where nothing refers backwards.
        for place in reversed(parts):
            if place not in ending and _ends(parts[place], place, parts, ending):
                ending.add(place)
        if "" in ending:
            return None
        if len(ending) == before:
            unending = (place for place in parts if place not in ending)
            return next((place for place in unending if "type" in parts[place]), "")
    return None


def subschemas(schema: Any) -> dict[str, Any]:
    """JSON pointer → schema of every part that is one, outermost first."""
    found: dict[str, Any] = {}
    open_parts: list[tuple[str, Any]] = [("", schema)]
    while open_parts:
        place, part = open_parts.pop()
        found[place] = part
        if not isinstance(part, dict):
            continue
        open_parts += (
            (f"{place}/{key}", part[key]) for key in _ONE if isinstance(part.get(key), dict | bool)
        )
        for key in _SEVERAL:
            if isinstance(part.get(key), list):
                open_parts += ((f"{place}/{key}/{at}", one) for at, one in enumerate(part[key]))
        for key in _NAMED:
            if isinstance(part.get(key), dict):
                named = part[key].items()
                open_parts += ((f"{place}/{key}/{escaped(name)}", one) for name, one in named)
    return found


def target(reference: object) -> str | None:
    """The place that a ``$ref`` into the same schema names; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    return unquote(reference[1:])


def _ends(part: Any, place: str, parts: Mapping[str, Any], ending: set[str]) -> bool:
    if not isinstance(part, dict):
        return True
    if "const" in part or "enum" in part:
        return True
    if "$ref" in part:
        named = target(part["$ref"])
        if named in parts and named not in ending:
            return False
    if not all(_inner(f"{place}/allOf/{at}", ending) for at in range(len(_list(part, "allOf")))):
        return False
    for key in ("anyOf", "oneOf"):
        count = len(_list(part, key))
        if count and not any(_inner(f"{place}/{key}/{at}", ending) for at in range(count)):
            return False
    return _kind_ends(part, place, parts, ending)


def _kind_ends(
    part: dict[str, Any], place: str, parts: Mapping[str, Any], ending: set[str]
) -> bool:
    """Whether one of its types can end; without a type, it need not be an object at all."""
    kinds = part.get("type")
    names = {kinds} if isinstance(kinds, str) else set(map(str, kinds or ()))
    if not names or names & SCALARS:
        return True
    if "object" in names:
        for name in map(str, _list(part, "required")):
            inner = f"{place}/properties/{escaped(name)}"
            if inner not in parts:
                inner = f"{place}/additionalProperties"
            if inner in parts and inner not in ending:
                break
        else:
            return True
    return "array" in names and _array_ends(part, place, parts, ending)


def _array_ends(
    part: dict[str, Any], place: str, parts: Mapping[str, Any], ending: set[str]
) -> bool:
    least = part.get("minItems", 0)
    first = len(_list(part, "prefixItems"))
    held = [f"{place}/prefixItems/{at}" for at in range(first) if at < least]
    if least > first:
        held.append(f"{place}/items")
    return all(inner in ending or inner not in parts for inner in held)


def _inner(place: str, ending: set[str]) -> bool:
    return place in ending


def _list(part: dict[str, Any], key: str) -> list[Any]:
    value = part.get(key)
    return value if isinstance(value, list) else []
