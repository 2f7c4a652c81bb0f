"""JSON objects to attrs classes through cattrs, without any coercion.

* Types are strict: ``"1"`` and ``true`` are not integers, ``1`` is a number, ``1.0`` is not an
  integer.
* ``null`` for a field that has a default means absent.
* ``Annotated[..., constraint]`` is checked after the type.
* Unions are told apart by the JSON type, and unions of classes by a ``Literal`` field.
* The first violation is raised as one ``InvalidRequest`` whose ``param`` is the JSON path.

Fields no class knows are not an error here: ``unknown_fields`` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import attrs
from cattrs.errors import BaseValidationError, ClassValidationError, IterableValidationError

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.structure_hooks import MISSING, missing, strict_converter

B = TypeVar("B", bound=Body)

_converter = strict_converter()


def structure(body: Mapping[str, Any], cls: type[B]) -> B:
    """``body`` as a ``cls``, which knows the names of the fields that have no place in it.

    Raises ``InvalidRequest`` naming the first field that is wrong.
    """
    try:
        typed = _converter.structure(body, cls)
        for path in unknown_fields(body, typed):
            (typed.ignored if path in cls.without_effect else typed.unknown).append(path)
        return typed
    except BaseValidationError as error:
        leaf, path = _first_leaf(error, "")
    except InvalidRequest as error:
        leaf, path = error, ""
    raise _refusal(leaf, path)


def unknown_fields(body: Mapping[str, Any], value: Any, prefix: str = "") -> Iterator[str]:
    """Paths of the fields in ``body`` that the typed ``value`` made of it has no place for."""
    known = {f.alias: getattr(value, f.name) for f in attrs.fields(type(value)) if f.init}
    for name, raw in body.items():
        path = f"{prefix}{name}"
        if raw is None:
            continue
        if name not in known:
            yield path
        elif isinstance(raw, dict) and attrs.has(type(known[name])):
            yield from unknown_fields(raw, known[name], f"{path}.")
        elif isinstance(raw, list) and isinstance(known[name], list):
            for index, (item, typed) in enumerate(zip(raw, known[name], strict=True)):
                if isinstance(item, dict) and attrs.has(type(typed)):
                    yield from unknown_fields(item, typed, f"{path}[{index}].")


def _first_leaf(error: Exception, path: str) -> tuple[Exception, str]:
    """The first leaf of cattrs' tree of errors, and the JSON path to it."""
    if isinstance(error, ClassValidationError):
        for inner, attribute in error.group_exceptions()[0]:
            return _first_leaf(inner, f"{path}.{attribute.name}")
    if isinstance(error, IterableValidationError):
        for inner, item in error.group_exceptions()[0]:
            step = f"[{item.index}]" if isinstance(item.index, int) else f".{item.index}"
            return _first_leaf(inner, f"{path}{step}")
    if isinstance(error, BaseValidationError):
        return _first_leaf(error.exceptions[0], path)
    return error, path


def _refusal(leaf: Exception, path: str) -> InvalidRequest:
    if isinstance(leaf, KeyError):  # what cattrs raises for an absent field
        return missing(path.removeprefix("."))
    if not isinstance(leaf, InvalidRequest):
        raise leaf  # a bug of ours, not the client's
    inner = leaf.param or ""
    place = (f"{path}.{inner}" if inner[:1] not in ("", "[") else f"{path}{inner}").removeprefix(
        "."
    )
    if leaf.code == MISSING:
        return missing(place)
    return InvalidRequest(f"Invalid `{place}`: {leaf.message}", code=leaf.code, param=place)
