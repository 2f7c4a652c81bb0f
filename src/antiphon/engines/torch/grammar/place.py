"""Where in a JSON Schema the compiler stumbled. It says what is wrong, and not where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
_UNMET = "Unsatisfiable"


def place_of(schema: Any, message: str, complaint: Callable[[Any], str]) -> tuple[str, str]:
    """JSON pointer of the innermost part that is complained about, and what is said of it.

    ``complaint`` compiles a schema and tells what is wrong with it. Of many parts the one to blame
    is found by halves. Empty for the whole schema.
    """
    shared = {key: schema[key] for key in _HOLDERS if isinstance(schema, dict) and key in schema}
    search = _Search(_first_line(message), shared, complaint)
    place, part = "", schema
    visited = {place}
    while True:
        parts = [one for one in _parts(place, part, schema) if one[0] not in visited]
        if search.unmet and isinstance(part, dict) and isinstance(part.get("properties"), dict):
            # What need not be there may be impossible.
            held = {f"{place}/properties/{escaped(str(one))}" for one in part.get("required", [])}
            inside = f"{place}/properties/"
            parts = [one for one in parts if not one[0].startswith(inside) or one[0] in held]
        found = search.among(parts)
        if found is None:
            return place + _keyword(part, search.first), search.first
        place, part = found
        visited.add(place)


class _Search:
    """Compiles parts, and remembers what it looks for."""

    def __init__(
        self, first: str, shared: Mapping[str, Any], complain: Callable[[Any], str]
    ) -> None:
        self.first = first
        self._shared = shared
        self._complain = complain
        self._trials = 0

    @property
    def unmet(self) -> bool:
        """Whether the schema is right, and nothing holds to it: the words differ further in."""
        return self.first.startswith(_UNMET)

    def among(self, parts: list[tuple[str, Any]]) -> tuple[str, Any] | None:
        """One that is complained about in the same way."""
        schemas = [one for one in parts if isinstance(one[1], dict)]
        while len(schemas) > 1:
            half = schemas[: len(schemas) // 2]
            blamed = self._same(self._complaint(_together(half)))
            schemas = half if blamed else schemas[len(half) :]
        if schemas and self._blames(schemas[0]):
            return schemas[0]
        return next((one for one in parts if self._blames(one)), None)

    def _blames(self, part: tuple[str, Any]) -> bool:
        told = self._complaint(part[1])
        if not self._same(told):
            return False
        self.first = told
        return True

    def _complaint(self, part: Any) -> str:
        self._trials += 1
        if self._trials > MOST_TRIALS:
            return ""
        alone = {**self._shared, **part} if isinstance(part, dict) else part
        return _first_line(self._complain(alone))

    def _same(self, told: str) -> bool:
        return told == self.first or (self.unmet and told.startswith(_UNMET))


def _together(parts: list[tuple[str, Any]]) -> dict[str, Any]:
    """A schema of all of them."""
    names = {str(at): one for at, (_, one) in enumerate(parts)}
    return {"type": "object", "properties": names, "required": [*names]}


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
