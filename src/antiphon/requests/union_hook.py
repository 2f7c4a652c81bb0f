"""Unions: told apart by the JSON type, and classes by what their field ``type`` says."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import attrs
from cattrs import Converter

from antiphon.errors import InvalidRequest
from antiphon.requests.class_hook import PLAIN, Hook
from antiphon.requests.faults import invalid_type, missing, quoted

TAG = "type"


def union_hook(kind: Any, converter: Converter) -> Hook:
    """The hook of a union of JSON types, of which several may be classes."""
    members = [member for member in get_args(kind) if member is not type(None)]
    classes = [member for member in members if attrs.has(member)]
    if len(classes) == len(get_args(kind)):
        return _tagged_hook(classes, converter)
    hooks: dict[type, Hook] = {}
    for member in members:
        hooks.setdefault(_json_type(member), converter.get_structure_hook(member))
    if len(classes) > 1:
        hooks[dict] = _tagged_hook(classes, converter)
    expected = tuple(hooks)
    if float in hooks:
        hooks.setdefault(int, hooks[float])
    plain = {member for member in members if member in PLAIN}
    if len(members) < len(get_args(kind)):
        plain.add(type(None))

    def hook(value: Any, _: Any) -> Any:
        found = type(value)
        if found in plain:
            return value
        inner = hooks.get(found)
        if inner is None:
            raise invalid_type(value, *expected)
        return inner(value, None)

    return hook


def _tagged_hook(classes: list[Any], converter: Converter) -> Hook:
    """By the tag; a class whose tag has a default takes the objects without one."""
    by_tag: dict[str | None, Hook] = {}
    for cls in classes:
        inner = converter.get_structure_hook(cls)
        by_tag.update(dict.fromkeys(get_args(get_type_hints(cls)[TAG]), inner))
        if attrs.fields_dict(cls)[TAG].default is not attrs.NOTHING:
            by_tag[None] = inner

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise invalid_type(value, dict)
        tag = value.get(TAG)
        try:
            inner = by_tag[tag]
        except (KeyError, TypeError):  # the latter for what has no hash
            raise refusal(tag) from None
        return inner(value, None)

    def refusal(tag: Any) -> InvalidRequest:
        if tag is None:
            return missing(TAG)
        if type(tag) is not str:
            error = invalid_type(tag, str)
            return InvalidRequest(error.message, code=error.code, param=TAG)
        allowed = ", ".join(f"'{name}'" for name in by_tag if name is not None)
        return InvalidRequest(
            f"{quoted(tag)} is not supported here; supported are {allowed}.",
            code="unsupported_value",
            param=TAG,
        )

    return hook


def _json_type(kind: Any) -> type:
    """The Python type that json.loads gives for values of ``kind``."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    origin = get_origin(kind)
    if origin is Literal:
        return str
    if origin in (list, dict):
        return list if origin is list else dict
    return dict if attrs.has(kind) else kind
