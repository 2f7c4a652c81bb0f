"""JSON objects to attrs classes through cattrs, without any coercion.

* Types are strict: ``"1"`` and ``true`` are not integers, ``1`` is a number, ``1.0`` is not an
  integer.
* ``null`` for a field that has a default means absent.
* ``Annotated[..., constraint]`` is checked after the type.
* Unions are told apart by the JSON type, and unions of classes by their field ``type``.
* The first violation is raised as one ``InvalidRequest`` whose ``param`` is the JSON path.

Fields no class knows are not an error here: the typed body lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import attrs
from cattrs.errors import BaseValidationError, ClassValidationError, IterableValidationError

from antiphon.errors import InvalidRequest
from antiphon.requests.body import Body
from antiphon.requests.class_hook import strangers
from antiphon.requests.faults import at, missing
from antiphon.requests.refusals import refuse_unsupported
from antiphon.requests.structure_hooks import strict_converter

B = TypeVar("B", bound=Body)

MANY = 1000
"""Paths that are gathered before all but the first are let go."""

_fast = strict_converter(detailed=False)
_detailed = strict_converter(detailed=True)


def structure(body: Mapping[str, Any], cls: type[B]) -> B:
    """``body`` as a ``cls``, which knows the names of the fields that have no place in it.

    Raises ``InvalidRequest`` naming the first parameter that is not offered, or else the first
    field that is wrong.
    """
    refuse_unsupported(body, cls.refused)
    seen: list[dict[str, Any]] = []
    token = strangers.set(seen)
    try:
        typed: B | None = None
        with suppress(InvalidRequest, KeyError):
            typed = _fast.structure(body, cls)
        if typed is None:
            typed = explain(body, cls)
    finally:
        strangers.reset(token)
    if seen:
        _list_strangers(body, typed)
    return typed


def _list_strangers(body: Mapping[str, Any], typed: Body) -> None:
    """Name the fields of ``body`` without a place in ``typed``, never all of a million."""
    for path in unknown_fields(body, typed):
        # What is refused and yet here has the value that asks for nothing.
        if path in typed.without_effect or path in typed.refused:
            typed.ignored.append(path)
        else:
            typed.unknown.append(path)
            if len(typed.unknown) > MANY:
                typed.keep_the_first()
    typed.keep_the_first()


def explain(body: Mapping[str, Any], cls: type[B]) -> B:
    """The same, slower, and able to say which field is wrong."""
    try:
        return _detailed.structure(body, cls)
    except BaseValidationError as error:
        leaf, path = _first_leaf(error, "")
        refusal = _refusal(leaf, path.removeprefix("."))
        del leaf
        _forget(error)
    except InvalidRequest as error:
        refusal = at("", error)
    try:
        raise refusal
    finally:
        del refusal


def _forget(error: BaseException) -> None:
    """Let go of where the errors were raised: those places hold the errors, and all of the body."""
    error.__traceback__ = error.__context__ = None
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            _forget(inner)


def unknown_fields(body: Mapping[str, Any], value: Any, prefix: str = "") -> Iterator[str]:
    """Paths of the fields in ``body`` that the typed ``value`` made of it has no place for."""
    names = _names(type(value))
    for alias, raw in body.items():
        if raw is None:
            continue
        if alias not in names:
            yield f"{prefix}{alias}"
        elif isinstance(raw, dict):
            typed = getattr(value, names[alias])
            if attrs.has(type(typed)):
                yield from unknown_fields(raw, typed, f"{prefix}{alias}.")
        elif isinstance(raw, list):
            typed = getattr(value, names[alias])
            for index, (item, inner) in enumerate(zip(raw, typed, strict=True)):
                if isinstance(item, dict) and attrs.has(type(inner)):
                    yield from unknown_fields(item, inner, f"{prefix}{alias}[{index}].")


_known: dict[type, Mapping[str, str]] = {}


def _names(cls: type[Any]) -> Mapping[str, str]:
    """The name in JSON of each field of a class, and its name in Python."""
    if cls not in _known:
        _known[cls] = {field.alias: field.name for field in attrs.fields(cls) if field.init}
    return _known[cls]


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
        return missing(path)
    if not isinstance(leaf, InvalidRequest):
        raise leaf  # a bug of ours, not the client's
    return at(path, leaf)
