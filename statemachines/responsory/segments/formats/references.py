"""References inside a JSON Schema, followed and taken along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from responsory.values import JSON


DEFINED = frozenset({"$defs", "definitions"})


def referred(root: Mapping[str, JSON], reference: JSON) -> JSON:
    """What a reference inside the schema names; a schema that nothing holds to if it is none."""
    nothing: JSON = {"not": {}}
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return nothing
    value: JSON = root
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if not isinstance(value, Mapping) or name not in value:
            return nothing
        value = value[name]
    return value


def self_contained(root: Mapping[str, JSON], part: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The part of ``root``, where ``#`` would be the part itself: what its references name comes
    with it, each once, and they name that."""
    names: dict[str, str] = {}
    inside = _alone(part, names)
    found: dict[str, JSON] = {}
    while missing := [reference for reference in names if names[reference] not in found]:
        for reference in missing:
            value = referred(root, reference)
            found[names[reference]] = _alone(value, names) if isinstance(value, Mapping) else value
    return {**inside, "$defs": found} if found else inside


def _alone(schema: Mapping[str, JSON], names: dict[str, str]) -> dict[str, JSON]:
    """The schema without its definitions, which are only there to be referred to."""
    return _of_object({key: one for key, one in schema.items() if key not in DEFINED}, names)


def _renamed(value: JSON, names: dict[str, str]) -> JSON:
    """The value with its local references renamed; ``names`` takes those that are new."""
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return _of_object(value, names) if isinstance(value, Mapping) else value


def _of_object(value: Mapping[str, JSON], names: dict[str, str]) -> dict[str, JSON]:
    made: dict[str, JSON] = {}
    for key, one in value.items():
        if key == "$ref" and isinstance(one, str) and one[:1] == "#":
            made[key] = f"#/$defs/{names.setdefault(one, f'part{len(names)}')}"
        else:
            made[key] = _renamed(one, names)
    return made
