"""Walks over the form of an answer with calls: nested lists, each its kind and its fields.

The kinds and their fields, nodes being lists themselves::

    ["Exactly", text]                       ["InOrder", [node, …]]
    ["JsonText", schema, strict, place]     ["OneOf", [node, …]]
    ["Matching", regex]                     ["Times", node, least, most]
    ["OwnGrammar", syntax, text, place]     ["Rule", name]
    ["InJsonString", node]                  ["Rules", node, {name: node}]
    ["TextWithout", stops, starts, marks, regexes, never, place]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from antiphon.engines.port import GrammarSpec

Node: TypeAlias = list[Any]


def inner(node: Node) -> list[Node]:
    """The nodes right inside a node."""
    match node:
        case ["InOrder" | "OneOf", parts]:
            return list(parts)
        case ["Times", part, _, _] | ["InJsonString", part]:
            return [part]
        case ["Rules", start, rules]:
            return [start, *rules.values()]
    return []


def walk(node: Node) -> Iterator[Node]:
    """The node and all in it, from the outside in."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(inner(node))


def flat(parts: list[Node]) -> Iterator[Node]:
    """The parts of a sequence, those of sequences in it too, without what is empty."""
    for part in parts:
        if part[0] == "InOrder":
            yield from flat(part[1])
        elif part != ["Exactly", ""] and not (part[0] == "Times" and part[3] == 0):
            yield part


def placed_forms(node: Node) -> Iterator[tuple[str, GrammarSpec]]:
    """What a client wrote, each with its place in the request and as a form by itself."""
    for part in walk(node):
        match part:
            case ["JsonText", dict(schema), strict, place] if place:
                yield place, GrammarSpec(kind="json_schema", text=json.dumps(schema), strict=strict)
            case ["TextWithout", _, _, _, regexes, _, place] if place:
                yield from ((place, GrammarSpec(kind="regex", text=one)) for one in regexes)
            case ["OwnGrammar", ("lark" | "regex" | "gbnf") as syntax, text, place] if place:
                yield place, GrammarSpec(kind=syntax, text=text)
