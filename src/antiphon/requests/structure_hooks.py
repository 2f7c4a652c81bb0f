"""The cattrs hooks behind ``converter``: one per kind of type, none of them coerces.

Two converters share them. The fast one stops at the first fault without saying where; the
detailed one collects the path to it. Both take exactly the same values.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.cols import mapping_structure_factory
from cattrs.errors import IterableValidationError, IterableValidationNote

from antiphon.errors import InvalidRequest
from antiphon.requests.class_hook import PLAIN, Hook, class_hook
from antiphon.requests.constraints import Length
from antiphon.requests.faults import invalid_type, out_of_range, quoted
from antiphon.requests.union_hook import union_hook


def strict_converter(*, detailed: bool) -> Converter:
    """A converter that takes each JSON value as it is, or raises ``InvalidRequest``.

    Without ``detailed`` an absent field is a bare ``KeyError``.
    """
    converter = Converter(detailed_validation=detailed)
    for kind in PLAIN:
        converter.register_structure_hook(kind, _strict(kind))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_factory(attrs.has, class_hook)
    for origins, factory in (
        ((list,), _list_hook),
        ((dict,), _dict_hook),
        ((Literal,), _literal_hook),
        ((types.UnionType, Union), union_hook),
        ((Annotated,), _annotated_hook),
    ):
        converter.register_structure_hook_factory(_has_origin(*origins), factory)
    return converter


def _has_origin(*origins: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) in origins


def _strict(kind: type) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise invalid_type(value, kind)
        return value

    return hook


def _number(value: Any, _: Any) -> float:
    if type(value) is not int and type(value) is not float:
        raise invalid_type(value, float)
    try:
        return float(value)
    except OverflowError:
        raise out_of_range("decimal", below=value < 0) from None


def _literal_hook(kind: Any, _: Converter) -> Hook:
    allowed = get_args(kind)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not str:
            raise invalid_type(value, str)
        if value not in allowed:
            names = ", ".join(f"'{item}'" for item in allowed)
            # A single allowed value names a kind of object, and other kinds exist elsewhere.
            code = "unsupported_value" if len(allowed) == 1 else "invalid_value"
            raise InvalidRequest(f"{quoted(value)} is not one of {names}.", code=code)
        return value

    return hook


def _annotated_hook(kind: Any, converter: Converter) -> Hook:
    base, *every = get_args(kind)
    # Its length is checked first: what is too long may have a million entries to convert.
    lengths = [each for each in every if isinstance(each, Length)]
    if (sized := get_origin(base)) is list and len(lengths) == 1:
        inner = _list_hook(base, converter, lengths[0])
        every.remove(lengths[0])
    else:
        inner = converter.get_structure_hook(base)
        if sized in (list, dict):
            for length in lengths:
                inner = _measured(inner, sized, length)
                every.remove(length)
    checks = [constraint.check for constraint in every]
    if not checks:
        return inner

    def hook(value: Any, _: Any) -> Any:
        typed = inner(value, None)
        for check in checks:
            check(typed)
        return typed

    return hook


def _measured(inner: Hook, sized: Any, length: Length) -> Hook:
    low, high = _limits(length)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is sized and not low <= len(value) <= high:
            length.check(value)
        return inner(value, None)

    return hook


def _limits(length: Length) -> tuple[int, int]:
    return length.low, sys.maxsize if length.high is None else length.high


def _list_hook(kind: Any, converter: Converter, length: Length | None = None) -> Hook:
    """``length``: what the list may have, looked at before its elements."""
    (item,) = get_args(kind)
    if item is Any:
        return _strict(list) if length is None else _measured(_strict(list), list, length)
    inner = converter.get_structure_hook(item)
    low, high = _limits(length or Length())

    def fast(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise invalid_type(value, list)
        if length is not None and not low <= len(value) <= high:
            length.check(value)
        if len(value) == 1:  # most contents are one part, for which a loop costs as much again
            return [inner(value[0], None)]
        return [inner(element, None) for element in value]

    def detailed(value: Any, _: Any) -> Any:
        # Up to the first element that is wrong: a client is told of one, and may send millions.
        if type(value) is not list:
            raise invalid_type(value, list)
        if length is not None:
            length.check(value)
        result = []
        for index, element in enumerate(value):
            try:
                result.append(inner(element, None))
            except Exception as error:
                note = IterableValidationNote(f"element {index}", index, item)
                error.__notes__ = [*getattr(error, "__notes__", ()), note]
                raise IterableValidationError("an element is wrong", [error], kind) from None
        return result

    return detailed if converter.detailed_validation else fast


def _dict_hook(kind: Any, converter: Converter) -> Hook:
    if get_args(kind)[1] is Any:
        return _strict(dict)
    inner = mapping_structure_factory(kind, converter)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        return inner(value, kind)

    return hook
