"""How long the work of a template's call would be, told before the call is made.

Python's own methods and Jinja's filters run to their end once they are called. So their arguments
are measured first: texts by their characters, lists and objects with all that is in them, as often
as it is in them. A list that holds another twice, and that the next, is short and endless to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

from jinja2.utils import Namespace

from antiphon.prompting.template_clock import MAX_CHARACTERS, look, require_room, require_size

MAX_EXPONENT = 64
_MAX_BITS = 1 << 16
_MAX_SLOW = 1 << 16
"""Characters for what takes its square in time, and that no template needs of a long text."""
_MANY = 1 << 10
_SCALARS = (str, int, float, type(None))
_MANY_IN_ONE = (list, tuple, AbstractSet, ValuesView)
_FIELD = re.compile(r"%(?:\([^)]*\))?([^%a-zA-Z]*)")
_WIDTH = re.compile(r"\d{3,}")

# They hand on what they get, or look at a value's own kind and length alone.
_SHALLOW_FILTERS = frozenset(
    {"attr", "batch", "count", "d", "default", "first", "items", "last", "length", "list", "map"}
    | {"random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice"}
)
_SHALLOW_TESTS = frozenset(
    {"boolean", "callable", "defined", "escaped", "false", "filter", "float", "integer"}
    | {"iterable", "mapping", "none", "number", "sameas", "sequence", "string", "test", "true"}
    | {"undefined"}
)
_ANY_NUMBER = frozenset({"d", "default", "map", "reject", "select"})
_SLOW = frozenset({"striptags", "urlize", "wordwrap", "pprint", "xmlattr"})


def weight(value: Any, indent: int = 0) -> int:
    """Characters and members in all. Raises ``TooMuch`` for more than there may be.

    ``indent``: characters that each member is moved in by for each level.
    """
    if isinstance(value, _SCALARS):
        return len(value) if isinstance(value, str) else 1
    total = steps = 0
    waiting = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        total += 1 + indent * depth
        if isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, Namespace):
            waiting.append((one._Namespace__attrs, depth + 1))
        elif isinstance(one, Mapping):
            waiting += ((part, depth + 1) for entry in one.items() for part in entry)
        elif isinstance(one, _MANY_IN_ONE):
            waiting += ((part, depth + 1) for part in one)
        require_size(total)
        if (steps := steps + 1) % _MANY == 0:
            look()
    return total


def check_operator(operator: str, left: Any, right: Any) -> None:
    """Raises ``TooMuch`` for what an operator of the language would make too long."""
    if operator == "*":
        for text, count in ((left, right), (right, left)):
            if isinstance(text, (str, bytes, list, tuple)) and isinstance(count, int):
                require_room(len(text) * count)
        _check_bits(_bits(left) + _bits(right))
    elif operator == "+":
        if isinstance(left, (str, bytes, list, tuple)) and isinstance(right, type(left) | str):
            require_room(len(left) + len(right))
    elif operator == "%":
        if isinstance(left, (str, bytes)):
            _check_printf(left, right)
    elif isinstance(right, (int, float)):
        _require(abs(right) <= MAX_EXPONENT)
        _check_bits(_bits(left) * MAX_EXPONENT)


def check_method(owner: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raises ``TooMuch`` for a method of Python's that would make too much."""
    _check_arguments(arguments, named, numbers=isinstance(owner, (str, bytes, int, float)))
    if isinstance(owner, (list, tuple)):
        weight(owner)
    elif isinstance(owner, (str, bytes)) and name in _GROWING:
        require_room(_GROWING[name](owner, *arguments, **named))


def check_test(name: str, value: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """As ``check_method``, for a test."""
    if name not in _SHALLOW_TESTS:
        weight(value)
        _check_arguments(arguments, named, numbers=False)


def check_filter(name: str, value: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """As ``check_method``, for a filter."""
    _check_arguments(arguments, named, numbers=name not in _ANY_NUMBER)
    if name in _SHALLOW_FILTERS:
        return
    if name == "tojson":
        indent = named.get("indent", arguments[1] if len(arguments) > 1 else None)
        weight(value, len(indent) if isinstance(indent, str) else indent or 0)
        return
    size = weight(value)
    if name in _SLOW or (name == "sum" and (arguments or named)):
        require_size(size, _MAX_SLOW)
    if name == "format":
        _check_printf(str(value), named or arguments)
    elif name == "round":
        numbers = (*arguments, *named.values())
        _require(all(abs(one) <= MAX_EXPONENT for one in numbers if isinstance(one, int)))
    elif name in _GROWING_FILTERS:
        require_room(_GROWING_FILTERS[name](value, *arguments, **named))


def _check_arguments(arguments: tuple[Any, ...], named: dict[str, Any], *, numbers: bool) -> None:
    """``numbers``: whether they count or measure something."""
    for argument in (*arguments, *named.values()):
        if numbers and isinstance(argument, int):
            require_size(abs(argument))
        weight(argument)


def _check_printf(form: str | bytes, given: Any) -> None:
    text = form if isinstance(form, str) else form.decode("latin-1")
    fields = "".join(_FIELD.findall(text))
    _require("*" not in fields)
    widths = sum(int(width[:9]) for width in _WIDTH.findall(fields))
    times = text.count("%") if isinstance(given, Mapping) else 1
    require_room(len(text) + widths + weight(given) * times)


def _require(fits: bool) -> None:
    require_size(0 if fits else MAX_CHARACTERS + 1)


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _check_bits(bits: int) -> None:
    _require(bits <= _MAX_BITS)


def _replaced(text: Any, old: Any = "", new: Any = "", *_: Any) -> int:
    times: int = text.count(old)
    return len(text) + times * len(new)


def _joined(separator: Any, parts: Any = (), *_: Any) -> int:
    return weight(parts) + len(separator) * (len(parts) if hasattr(parts, "__len__") else 0)


def _expanded(text: Any, tabsize: int = 8) -> int:
    return len(text) * (1 + abs(tabsize))


def _translated(text: Any, table: Any = (), *_: Any) -> int:
    values = table.values() if isinstance(table, Mapping) else ()
    longest = max((len(part) for part in values if isinstance(part, str)), default=1)
    return len(text) * longest


_GROWING: Mapping[str, Callable[..., int]] = {
    "replace": _replaced,
    "join": _joined,
    "expandtabs": _expanded,
    "translate": _translated,
}


def _replaced_by_filter(s: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> int:
    return _replaced(str(s), str(old), str(new))


def _indented(s: Any, width: int | str = 4, *_: Any, **__: Any) -> int:
    by = len(width) if isinstance(width, str) else width
    return len(text := str(s)) + by * (len(text.splitlines()) + 1)


def _joined_by_filter(value: Any, d: Any = "", *_: Any, **__: Any) -> int:
    return _joined(str(d), value)


def _wrapped(s: Any, *arguments: Any, **named: Any) -> int:
    texts = [part for part in (*arguments, *named.values()) if isinstance(part, str)]
    return (len(str(s)) + 1) * max(map(len, texts), default=1)


_GROWING_FILTERS: Mapping[str, Callable[..., int]] = {
    "replace": _replaced_by_filter,
    "indent": _indented,
    "join": _joined_by_filter,
    "wordwrap": _wrapped,
    "urlize": _wrapped,
}
