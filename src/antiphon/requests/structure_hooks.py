"""The cattrs hooks behind ``converter``: one per kind of type, none of them coerces."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from cattrs import Converter
from cattrs.cols import mapping_structure_factory
from cattrs.errors import IterableValidationError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn

from antiphon.errors import InvalidRequest

Hook = Callable[[Any, Any], Any]

MISSING = "missing_required_parameter"

JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def strict_converter() -> Converter:
    """A converter that takes each JSON value as it is, or raises ``InvalidRequest``."""
    converter = Converter(detailed_validation=True)
    for kind in (str, bool, int):
        converter.register_structure_hook(kind, _strict(kind))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_factory(attrs.has, _class_hook)
    for origins, factory in (
        ((list,), _list_hook),
        ((dict,), _dict_hook),
        ((Literal,), _literal_hook),
        ((types.UnionType, Union), _union_hook),
        ((Annotated,), _annotated_hook),
    ):
        converter.register_structure_hook_factory(_has_origin(*origins), factory)
    return converter


def _has_origin(*origins: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) in origins


def invalid_type(value: Any, *expected: type) -> InvalidRequest:
    """The refusal of a value of the wrong JSON type."""
    names = " or ".join(JSON_NAMES[kind] for kind in expected)
    found = JSON_NAMES.get(type(value), "something else")
    return InvalidRequest(f"Expected {names}, got {found}.", code="invalid_type")


def missing(param: str) -> InvalidRequest:
    """The refusal of a body that lacks a required field."""
    return InvalidRequest(f"Missing required parameter: `{param}`.", code=MISSING, param=param)


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
        raise InvalidRequest("The number is out of range.", code="invalid_value") from None


def _literal_hook(kind: Any, _: Converter) -> Hook:
    allowed = get_args(kind)

    def hook(value: Any, _: Any) -> Any:
        if type(value) not in {type(item) for item in allowed}:
            raise invalid_type(value, type(allowed[0]))
        if value not in allowed:
            names = ", ".join(f"'{item}'" for item in allowed)
            # A single allowed value names a kind of object, and other kinds exist elsewhere.
            code = "unsupported_value" if len(allowed) == 1 else "invalid_value"
            raise InvalidRequest(f"'{value}' is not one of {names}.", code=code)
        return value

    return hook


def _annotated_hook(kind: Any, converter: Converter) -> Hook:
    base, *constraints = get_args(kind)

    def hook(value: Any, _: Any) -> Any:
        typed = converter.structure(value, base)
        for constraint in constraints:
            constraint.check(typed)
        return typed

    return hook


def _json_type(kind: Any) -> type:
    """The Python type that json.loads gives for values of ``kind``."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(kind)
    if origin is Literal:
        return type(get_args(kind)[0])
    if origin in (list, dict):
        return list if origin is list else dict
    return dict if attrs.has(kind) else kind


def _tag(cls: Any) -> tuple[str, tuple[str, ...]] | None:
    """The first ``Literal`` field of a class and its values: what tells it from its siblings."""
    hints = get_type_hints(cls)
    for field in attrs.fields(cls):
        if get_origin(hints[field.name]) is Literal:
            return field.alias, get_args(hints[field.name])
    return None


def _union_hook(kind: Any, converter: Converter) -> Hook:
    """By JSON type; of several classes, by their tag (a class without one is the fallback)."""
    members = [member for member in get_args(kind) if member is not type(None)]
    optional = len(members) < len(get_args(kind))
    by_type: dict[type, Any] = {}
    classes = [member for member in members if attrs.has(member)]
    for member in members:
        by_type.setdefault(_json_type(member), member)
    tags = {cls: tag for cls in classes if (tag := _tag(cls))}
    untagged = [cls for cls in classes if cls not in tags or _default(cls, tags[cls][0])]

    def pick(value: dict[str, Any]) -> Any:
        names: list[str] = []
        field = next(iter(tags.values()))[0]
        for cls, (name, values) in tags.items():
            names.extend(values)
            if value.get(name) in values:
                return cls
        if value.get(field) is None:
            if untagged:
                return untagged[0]
            raise missing(field)
        if type(value[field]) is not str:
            error = invalid_type(value[field], str)
            raise InvalidRequest(error.message, code=error.code, param=field)
        allowed = ", ".join(f"'{name}'" for name in names)
        raise InvalidRequest(
            f"'{value[field]}' is not supported here; supported are {allowed}.",
            code="unsupported_value",
            param=field,
        )

    def hook(value: Any, _: Any) -> Any:
        if value is None and optional:
            return None
        found = int if type(value) is int else type(value)
        if found is int and int not in by_type and float in by_type:
            found = float
        if found not in by_type:
            raise invalid_type(value, *by_type)
        member = pick(value) if found is dict and len(classes) > 1 else by_type[found]
        return converter.structure(value, member)

    return hook


def _default(cls: Any, alias: str) -> bool:
    return any(f.alias == alias and f.default is not attrs.NOTHING for f in attrs.fields(cls))


def _class_hook(cls: Any, converter: Converter) -> Hook:
    inner = make_dict_structure_fn(cls, converter, _cattrs_use_alias=True)
    optional = {f.alias for f in attrs.fields(cls) if f.default is not attrs.NOTHING}

    def hook(value: Any, kind: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        present = {k: v for k, v in value.items() if v is not None or k not in optional}
        return inner(present, kind)

    return hook


def _list_hook(kind: Any, converter: Converter) -> Hook:
    """Up to the first element that is wrong: a client is told of one, and may send millions."""
    (item,) = get_args(kind)
    inner: Hook = (lambda value, _: value) if item is Any else converter.get_structure_hook(item)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise invalid_type(value, list)
        result = []
        for index, element in enumerate(value):
            try:
                result.append(inner(element, item))
            except Exception as error:
                note = IterableValidationNote(f"element {index}", index, item)
                error.__notes__ = [*getattr(error, "__notes__", ()), note]
                raise IterableValidationError("an element is wrong", [error], kind) from None
        return result

    return hook


def _dict_hook(kind: Any, converter: Converter) -> Hook:
    return _only(dict, mapping_structure_factory(kind, converter), kind)


def _only(json_type: type, inner: Hook, kind: Any) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if type(value) is not json_type:
            raise invalid_type(value, json_type)
        return inner(value, kind)

    return hook
