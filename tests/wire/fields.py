"""The parameters of each endpoint, read off the classes that read them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from antiphon.requests.body import Body
from antiphon.requests.chat import ChatRequest
from antiphon.requests.completions import CompletionRequest
from antiphon.requests.refusals import CHAT, COMPLETIONS, RESPONSES
from antiphon.requests.responses import ResponseRequest
from antiphon.requests.tokenize import Decode, EncodeChat, EncodePrompt

CLASSES: Mapping[str, tuple[type[Body], ...]] = {
    "chat": (ChatRequest,),
    "completions": (CompletionRequest,),
    "responses": (ResponseRequest,),
    "tokenize": (EncodePrompt, EncodeChat),
    "detokenize": (Decode,),
}
REFUSALS: Mapping[str, Mapping[str, str]] = {
    "chat": CHAT,
    "completions": COMPLETIONS,
    "responses": RESPONSES,
}
"""Known names that are refused whatever their value, by endpoint."""
LISTED = {"chat": {"tools"}, "responses": {"tools"}, "tokenize": {"tools", "messages"}}
"""Lists of objects that are one parameter."""


def parameters(endpoint: str) -> set[str]:
    """Dotted names: of the fields, and of the kinds of object where a field takes several."""
    found: set[str] = set()
    for cls in CLASSES[endpoint]:
        hints = get_type_hints(cls, include_extras=True)
        for field in attrs.fields(cls):
            if field.init:
                plain = field.name in LISTED.get(endpoint, ())
                found.update([field.alias] if plain else _names(hints[field.name], field.alias))
    return found


def without_effect(endpoint: str) -> set[str]:
    """Names that are taken and listed as ignored."""
    return {name for cls in CLASSES[endpoint] for name in cls.without_effect}


def _names(kind: Any, path: str) -> Iterator[str]:
    members = list(_members(kind))
    classes = [member for member in members if attrs.has(member)]
    words = [word for member in members if get_origin(member) is Literal
             for word in get_args(member)]  # fmt: skip
    role = {cls: _tags(cls, "role") for cls in classes}
    tags = {cls: _tags(cls, "type") for cls in classes}
    if not classes:
        yield path
    elif all(tags.values()):
        yield from (f"{path}.{tag}" for cls in classes for tag in tags[cls])
        yield from (f"{path}.{word}" for word in words)
        if str in members:
            yield path
    elif all(role.values()):
        yield from (f"{path}.{name}" for cls in classes for name in role[cls])
    else:
        for cls in classes:
            hints = get_type_hints(cls, include_extras=True)
            for field in attrs.fields(cls):
                yield from _names(hints[field.name], f"{path}.{field.alias}")


def _members(kind: Any) -> Iterator[Any]:
    """The types of a union, and of the items of a list of objects."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield from _members(args[0])
    elif origin in (types.UnionType, Union):
        for member in args:
            yield from _members(member)
    elif origin is list:
        inner = list(_members(args[0]))
        yield from inner if any(map(attrs.has, inner)) else [kind]
    else:
        yield kind


def _tags(cls: Any, name: str) -> tuple[str, ...]:
    hint = get_type_hints(cls).get(name)
    return get_args(hint) if get_origin(hint) is Literal else ()
