"""Where in a JSON Schema the compiler stumbled. It says what is wrong, and not where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from antiphon.engines.torch.grammar.endless import target
from antiphon.engines.torch.grammar.schema import escaped

MOST_TRIALS = 400
"""Parts that are compiled in search of the place."""

KEYWORDS = {
    "Invalid type": "type",
    "Unknown format": "format",
    "regex parse error": "pattern",
    "Pointer": "$ref",
    "Resource": "$ref",
}
"""What a message begins with, and the keyword it is about."""

_HOLDERS = ("$defs", "definitions")


def place_of(schema: Any, message: str, complaint: Callable[[Any], str]) -> str:
    """JSON pointer of the innermost part about which the compiler says the same.

    ``complaint`` compiles a schema and tells what is wrong with it. Empty for the whole schema.
    """
    first = _first_line(message)
    trials = 0
    place, part = "", schema
    shared = {key: schema[key] for key in _HOLDERS if isinstance(schema, dict) and key in schema}
    visited = {place}
    while True:
        for inner_place, inner in _parts(place, part, schema):
            if inner_place in visited:
                continue
            trials += 1
            if trials > MOST_TRIALS:
                return place
            alone = {**shared, **inner} if isinstance(inner, dict) else inner
            if _first_line(complaint(alone)) == first:
                place, part = inner_place, inner
                visited.add(place)
                break
        else:
            return place + _keyword(part, first)


def _keyword(part: Any, message: str) -> str:
    """The keyword that is to blame, if the message tells."""
    if not isinstance(part, dict):
        return ""
    for start, key in KEYWORDS.items():
        if message.startswith(start) and key in part:
            return f"/{key}"
    if message.startswith("Unimplemented keys"):
        return next((f"/{key}" for key in part if f'"{key}"' in message), "")
    return ""


def _parts(place: str, part: Any, schema: Any) -> Iterator[tuple[str, Any]]:
    """What stands one step further in, and what is referred to."""
    if isinstance(part, list):
        yield from ((f"{place}/{index}", one) for index, one in enumerate(part))
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if key in ("const", "enum", "required", "examples", "default"):
            continue
        inner = f"{place}/{escaped(key)}"
        if key == "$ref" and (named := target(value)):
            yield named, resolve(schema, named)
        elif key in ("properties", "patternProperties", *_HOLDERS) and isinstance(value, dict):
            yield from ((f"{inner}/{escaped(name)}", one) for name, one in value.items())
        elif isinstance(value, list):
            yield from ((f"{inner}/{at}", one) for at, one in enumerate(value))
        elif isinstance(value, dict):
            yield inner, value


def resolve(schema: Any, pointer: str) -> Any:
    """What a JSON pointer names; None if there is nothing."""
    value = schema
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _first_line(message: str) -> str:
    return message.partition("\n")[0]
