"""How a family writes a call, as a grammar: for servers that hold a model to it.

A form tells it beside its reader, from the same data, so what is generated is what is read. A node
is a value without any dialect; a server turns it into that of its own engine. In nested lists
(``as_json``) it can cross to an engine that knows nothing of this library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.values import JSON


class Unwritable(ValueError):
    """A form cannot be held to what a strict tool asks. ``place``: where its schema came from."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(reason)
        self.place = place


@immutable
class Exactly:
    """This text: a marker, a name, a separator. Markers in it may be control tokens."""

    text: str


@immutable
class JsonText:
    """A JSON text that holds to ``schema``; None: any object. ``strict``: the schema is held to in
    all it says, or refused; else what cannot be held to is passed over. ``place``: where the schema
    came from, for whoever has to refuse it."""

    schema: Mapping[str, JSON] | None = None
    strict: bool = False
    place: str = ""


@immutable
class TextWithout:
    """Any text, also none, in which none of ``stops`` occurs and which begins with none of
    ``starts``; it goes on to the stop that is written next, or to the end of all text. ``marks``:
    control tokens may stand in it, which are no text otherwise. ``regexes``: all of them match the
    text as a whole; ``place``: where they came from. ``never``: one that does not."""

    stops: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    marks: bool = False
    regexes: tuple[str, ...] = ()
    never: str = ""
    place: str = ""


@immutable
class Matching:
    """Text that a regular expression matches as a whole; of classes, groups, alternatives and
    repetitions alone."""

    regex: str


@immutable
class OwnGrammar:
    """Text of a grammar that a client wrote. ``syntax``: ``lark`` or ``regex``. ``place``: where it
    came from."""

    syntax: str
    definition: str
    place: str = ""


@immutable
class InJsonString:
    """A string of JSON, quotes included, whose value is text of the part, which is ``Matching`` or
    ``OwnGrammar``."""

    part: Written


@immutable
class InOrder:
    """One after another."""

    parts: tuple[Written, ...]


@immutable
class OneOf:
    """One of these."""

    parts: tuple[Written, ...]


@immutable
class Times:
    """The part so many times; ``most`` None: without end."""

    part: Written
    least: int = 0
    most: int | None = None


@immutable
class Rule:
    """A named node, for what may hold itself: ``rules`` of the nearest ``Rules`` around it."""

    name: str


@immutable
class Rules:
    """``start``, with ``rules`` by name (lower case letters and underscores)."""

    start: Written
    rules: Mapping[str, Written] = attrs.field(factory=dict)


def searched(pattern: str) -> str:
    """The pattern of a JSON Schema, which is looked for anywhere in a text, as one that matches the
    text as a whole."""
    before = "" if pattern.startswith("^") else "(?s:.*)"
    ends = re.search(r"(?<!\\)(?:\\\\)*\$$", pattern) is not None
    inner = pattern.removeprefix("^")
    return f"{before}(?:{inner[:-1] if ends else inner}){'' if ends else '(?s:.*)'}"


Written: TypeAlias = (
    Exactly
    | JsonText
    | TextWithout
    | Matching
    | OwnGrammar
    | InJsonString
    | InOrder
    | OneOf
    | Times
    | Rule
    | Rules
)


def as_json(node: Written) -> list[Any]:
    """The node as lists: its kind, then its fields, nodes in them likewise."""
    match node:
        case InOrder(parts) | OneOf(parts):
            return [type(node).__name__, [as_json(part) for part in parts]]
        case Times(part, least, most):
            return ["Times", as_json(part), least, most]
        case Rules(start, rules):
            return ["Rules", as_json(start), {name: as_json(rule) for name, rule in rules.items()}]
        case InJsonString(part):
            return ["InJsonString", as_json(part)]
        case TextWithout(stops, starts, marks, regexes, never, place):
            told = [list(stops), list(starts), marks, list(regexes), never, place]
            return ["TextWithout", *told]
        case JsonText(schema, strict, place):
            return ["JsonText", schema, strict, place]
        case OwnGrammar(syntax, definition, place):
            return ["OwnGrammar", syntax, definition, place]
        case Exactly(text) | Matching(text) | Rule(text):
            return [type(node).__name__, text]
