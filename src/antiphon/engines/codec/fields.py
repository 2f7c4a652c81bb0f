"""Plain fields of a class as an object of JSON, and back, each held against its declared type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from antiphon.engines.codec.envelope import CodecError

PLAIN: dict[str, frozenset[type]] = {
    "int": frozenset({int}),
    "float": frozenset({float, int}),
    "str": frozenset({str}),
    "bool": frozenset({bool}),
    "None": frozenset({type(None)}),
}
"""Declared type → what a decoded value may be. ``bool`` is no ``int`` here."""


def plain_fields(cls: type[attrs.AttrsInstance]) -> dict[str, frozenset[type]]:
    """The fields that JSON can hold as they are, and what each may be."""
    found = {}
    for field in attrs.fields(cls):
        hint = str(field.type)  # a string, as annotations are here
        names = ["str"] if hint.startswith("Literal['") else hint.split(" | ")
        if all(name in PLAIN for name in names):
            found[field.name] = frozenset().union(*(PLAIN[name] for name in names))
    return found


def take_plain(values: Any, fields: Mapping[str, frozenset[type]]) -> dict[str, Any]:
    """Exactly these fields of a decoded object. Raises ``CodecError``."""
    if not isinstance(values, dict):
        raise CodecError("a header is no object")
    for name, kinds in fields.items():
        if type(values.get(name, _ABSENT)) not in kinds:
            raise CodecError(f"{name} of a header is not there, or not what it should be")
    return {name: values[name] for name in fields}


def take_list(values: Any, name: str, kind: type) -> list[Any]:
    """The list of that name, of values of one type. Raises ``CodecError``."""
    items = values.get(name)
    if not isinstance(items, list) or any(type(item) is not kind for item in items):
        raise CodecError(f"{name} of a header is no list of {kind.__name__}")
    return items


_ABSENT = object()
