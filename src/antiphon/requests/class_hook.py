"""Objects of a known class: nulls mean absent, and fields without a place are noticed."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, get_args, get_type_hints

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn

from antiphon.requests.faults import invalid_type

strangers: ContextVar[list[dict[str, Any]]] = ContextVar("strangers")
"""The first object seen of the body at hand that has fields without a place in its class.

Hardly any body has one, so that looking for their paths can wait until then.
"""


def class_hook(cls: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    """The hook of an attrs class."""
    inner = make_dict_structure_fn(
        cls,
        converter,
        _cattrs_use_alias=True,
        _cattrs_detailed_validation=converter.detailed_validation,
    )
    fields = [field for field in attrs.fields(cls) if field.init]
    known = frozenset(field.alias for field in fields)
    required = frozenset(field.alias for field in fields if field.default is attrs.NOTHING)
    types = get_type_hints(cls, include_extras=True)
    # Where a field that may be left out takes null by its type, null is its default anyway.
    drops = not all(
        field.alias in required or {type(None), Any} & {*get_args(types[field.name])}
        for field in fields
    )

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        if drops and None in value.values():
            value = {k: v for k, v in value.items() if v is not None or k in required}
        if not known.issuperset(value) and not (seen := strangers.get()):
            seen.append(value)
        return inner(value, cls)

    return hook
