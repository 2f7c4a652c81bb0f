"""Strategies read off the types of the request classes: a field that is added is drawn at once.

``of(kind)`` gives JSON values that the type allows, ``objects(cls)`` whole objects of an attrs
class. Where a type says less than the API does, ``SPECIAL`` says more.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from antiphon.requests.constraints import Between, Length, Offered, Only, Pattern

Values = st.SearchStrategy[Any]

ODD_TEXTS = (
    "", " ", "\n", "a", "hi", "Hi", " there", "<think>", "</think>", "<tool_call>", "<|im_end|>",
    "<|im_start|>system", "{{ 7 * 7 }}", "{% raw %}", "\0", "\x7f", "\u2028", "\ufeff", "\ufffd",
    "é", "e\u0301", "你好", "👩‍👩‍👧", "\U0010ffff", "ß" * 40, "resp_1", "../../etc/passwd", "null",
    "%s%n", "x" * 300,
)  # fmt: skip
TEXTS: Values = st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=6)
SCALARS: Values = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from([0.0, -0.5, 0.5, 1.5, 1e300, 5e-324])
    | TEXTS
)
ANYTHING: Values = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    ),
    max_leaves=4,
)
CALL_IDS = st.sampled_from(["call_1", "call_2"])
SCHEMAS: Values = st.sampled_from(
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "string", "enum": ["x", "y"]},
        {"type": "array", "items": {"$ref": "#/definitions/n"}, "definitions": {"n": {}}},
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1:1/x"},
        {"type": "nothing"},
        {"pattern": "(", "type": "string"},
        {"anyOf": []},
    ]
)
REGEXES: Values = st.sampled_from(["[a-z]+", "(", "a{1,99999}", "(a|b)*c", "\\d+", "(?=x)", ""])
GRAMMARS: Values = st.sampled_from(['root ::= "a"', "root ::= root", "", 'x ::= "y"', "root ::= ("])

ALWAYS = ("stream",)
"""Optional fields that are never left out."""
Field = tuple[str, str]
"""Name of the class, and of the field."""
SPECIAL: dict[Field, Values] = {}
"""What to draw for a field in place of what its type says; ``*`` is any class."""


def special(field: str, values: Values, cls: str = "*") -> None:
    SPECIAL[cls, field] = values


for _name in ("call_id", "tool_call_id"):
    special(_name, CALL_IDS)
for _name in ("parameters", "schema", "json_schema"):
    special(_name, SCHEMAS)
special("json_schema", st.fixed_dictionaries({"name": TEXTS, "schema": SCHEMAS}), "ResponseFormat")
special("regex", REGEXES)
for _name in ("ebnf", "grammar"):
    special(_name, GRAMMARS)
special("name", st.sampled_from(["get_weather", "add", "f"]))
special("arguments", st.sampled_from(["{}", '{"a": 1}', "{", "", "[]", '{"a": "\\u0000"}']))
special("n", st.integers(1, 3))
special("logit_bias", st.dictionaries(st.sampled_from(["0", "5", "40"]), st.floats(-100, 100)))
special(
    "metadata", st.dictionaries(st.sampled_from(["a", "b", "ü"]), TEXTS, max_size=3),
    "ResponseRequest",
)  # fmt: skip
special("request_id", st.sampled_from(["r1", "r-2", "x y", "é", "a" * 100, ""]))
special("rid", st.sampled_from(["r3", "\n"]))


@functools.cache
def of(kind: Any) -> Values:
    """JSON values of a type, most of them within its constraints."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _constrained(args[0], args[1:])
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (types.UnionType, Union):
        return st.one_of(*map(of, args))
    if origin is list:
        return st.lists(of(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["a", "b", "thinking", "messages"]), of(args[1]),
                               max_size=2)  # fmt: skip
    if attrs.has(kind):
        return objects(kind)
    return _PLAIN.get(kind, ANYTHING)


_PLAIN: Mapping[Any, Values] = {
    str: TEXTS,
    bool: st.booleans(),
    int: st.integers(-2, 300) | st.sampled_from([2**31, 2**63, -(2**63)]),
    float: st.floats(-5, 5) | st.integers(-1, 2),
    type(None): st.none(),
}


def _constrained(base: Any, constraints: tuple[Any, ...]) -> Values:
    low: float | None = None
    high: float | None = None
    for each in constraints:
        if isinstance(each, Only):
            return st.just(each.value) | of(base)
        if isinstance(each, Offered):
            return st.sampled_from(each.values)
        if isinstance(each, Pattern):
            return st.from_regex(each.regex, fullmatch=True).filter(lambda text: len(text) < 99)
        if isinstance(each, Length):
            return _long(base, each)
        if isinstance(each, Between):
            low = each.low if low is None else low
            high = each.high if high is None else high
    if base is int and not low == high is None:
        start = 0 if low is None else int(low)
        ends = [each for each in (low, high) if each is not None]
        some = st.integers(start, min(start + 40, start + 40 if high is None else int(high)))
        return some | st.sampled_from([int(end) for end in ends] or [0])
    if base is float and low is not None and high is not None:
        return st.floats(low, high) | st.sampled_from([low, high, (low + high) / 2])
    return of(base)


def _long(base: Any, length: Length) -> Values:
    if get_origin(base) is list:
        return st.lists(of(get_args(base)[0]), min_size=length.low, max_size=length.low + 2)
    if base is str and length.low:
        return TEXTS.filter(bool)
    return of(base)


def objects(cls: Any) -> Values:
    """Objects of an attrs class: all required fields, and a few of the others."""
    hints = get_type_hints(cls, include_extras=True)
    required: dict[str, Callable[[], Values]] = {}
    optional: dict[str, Callable[[], Values]] = {}
    for field in attrs.fields(cls):
        if not field.init:
            continue
        drawn = SPECIAL.get((cls.__name__, field.name), SPECIAL.get(("*", field.name)))
        values = functools.partial(of, hints[field.name]) if drawn is None else _always(drawn)
        (required if field.default is attrs.NOTHING else optional)[field.alias] = values
    often = [name for name in ALWAYS if name in optional]
    names = sorted(optional.keys() - often)

    @st.composite
    def draw_object(draw: st.DrawFn) -> dict[str, Any]:
        value = {name: draw(values()) for name, values in required.items()}
        drawn = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
        return value | {name: draw(optional[name]()) for name in [*often, *drawn]}

    return draw_object()


def _always(values: Values) -> Callable[[], Values]:
    return lambda: values
