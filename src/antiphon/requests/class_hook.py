"""Objects of a known class: nulls mean absent, and fields without a place are noticed."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn

from antiphon.requests.faults import invalid_type

Hook = Callable[[Any, Any], Any]

PLAIN = (str, bool, int)
"""What needs no look beyond its JSON type."""

strangers: ContextVar[list[dict[str, Any]]] = ContextVar("strangers")
"""The first object seen of the body at hand that has fields without a place in its class.

Hardly any body has one, so that looking for their paths can wait until then.
"""


def class_hook(cls: Any, converter: Converter) -> Hook:
    """The hook of an attrs class."""
    return (_detailed if converter.detailed_validation else _fast)(cls, converter)


def _detailed(cls: Any, converter: Converter) -> Hook:
    """By cattrs, which notes the place of every fault."""
    inner = make_dict_structure_fn(
        cls, converter, _cattrs_use_alias=True, _cattrs_detailed_validation=True
    )
    known = {field.alias for field in attrs.fields(cls) if field.init}
    required = _required(cls)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        if None in value.values():
            value = {k: v for k, v in value.items() if v is not None or k in required}
        if not known.issuperset(value):
            _notice(value)
        return inner(value, cls)

    return hook


def _fast(cls: Any, converter: Converter) -> Hook:
    """By a look at the fields that came, of the many that can come."""
    kinds = get_type_hints(cls, include_extras=True)
    hooks = {
        field.alias: (
            _plain(kinds[field.name]),
            _words(kinds[field.name]),
            converter.get_structure_hook(kinds[field.name]),
        )
        for field in attrs.fields(cls)
        if field.init
    }
    required = _required(cls)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        given = value  # of most objects every field can stay as it is
        for name, raw in value.items():
            found = hooks.get(name)
            if found is not None:
                if raw.__class__ is found[0] or (raw.__class__ is str and raw in found[1]):
                    continue
                if raw is not None or name in required:
                    inner = found[2](raw, None)
                    if inner is not raw:
                        given = given.copy() if given is value else given
                        given[name] = inner
                    continue
            else:
                _notice(value)
            given = given.copy() if given is value else given
            del given[name]
        try:
            return cls(**given)
        except TypeError:
            raise KeyError from None  # as cattrs does for what is missing

    return hook


def _required(cls: Any) -> frozenset[str]:
    fields = attrs.fields(cls)
    return frozenset(field.alias for field in fields if field.default is attrs.NOTHING)


def _plain(kind: Any) -> type | None:
    """A JSON type of which every value will do, if there is one; null is for itself."""
    kinds = get_args(kind) if get_origin(kind) in (types.UnionType, Union) else (kind,)
    return next((member for member in kinds if member in PLAIN), None)


def _words(kind: Any) -> frozenset[str]:
    """Strings that will do."""
    return frozenset(get_args(kind)) if get_origin(kind) is Literal else frozenset()


def _notice(value: dict[str, Any]) -> None:
    if not (seen := strangers.get()):
        seen.append(value)
