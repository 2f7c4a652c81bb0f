"""An object as Gemma writes it, as a grammar made of the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.segments.formats.schema_written import (
    Notation,
    SchemaWriter,
    own_text,
    text_regex,
    with_any_value,
)
from responsory.segments.written import Exactly, InOrder, Matching, OneOf, TextWithout

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

END = '<|"|>'
QUOTE = Exactly(END)
STRING = InOrder((QUOTE, TextWithout((END,)), QUOTE))
COMMA = Exactly(",")
KEY = Matching(r"[A-Za-z_][A-Za-z0-9_]{0,40}")


class Gemma(Notation):
    """Values with a quote of their own, and keys without quotes."""

    @property
    def string(self) -> Written:
        """See ``Notation``."""
        return STRING

    def text(self, schema: Mapping[str, JSON], place: str) -> Written | None:
        """Between such quotes text is as it stands."""
        regex = text_regex(schema)
        if regex is None:
            return None
        return InOrder((QUOTE, TextWithout((END,), regex=regex, place=place), QUOTE))

    def listed(self, value: JSON) -> Written:
        """See ``Notation``."""
        if isinstance(value, str):
            return InOrder((QUOTE, Exactly(value), QUOTE))
        if isinstance(value, list):
            return InOrder((Exactly("["), *_joined([self.listed(v) for v in value]), Exactly("]")))
        if isinstance(value, Mapping):
            pairs = [InOrder((self.key(key), self.listed(item))) for key, item in value.items()]
            return InOrder((Exactly("{"), *_joined(pairs), Exactly("}")))
        return Exactly(json.dumps(value))

    def key(self, name: str) -> Written:
        """See ``Notation``."""
        return Exactly(f"{name}:")

    @property
    def any_key(self) -> Written:
        """See ``Notation``."""
        return InOrder((KEY, Exactly(":")))


def gemma_calls(tools: Sequence[Tool]) -> Written:
    """The name and the arguments of a call of one of the tools."""
    calls = [InOrder((Exactly(f"call:{tool.name}"), _object(tool))) for tool in tools]
    return with_any_value(Gemma(), OneOf(tuple(calls)))


def _object(tool: Tool) -> Written:
    """The object of a call's arguments, brackets included."""
    if tool.kind == "custom":
        text = (
            STRING if tool.grammar is None else InOrder((QUOTE, own_text(tool.grammar, END), QUOTE))
        )
        return InOrder((Exactly("{input:"), text, Exactly("}")))
    return SchemaWriter(Gemma(), tool).object()


def _joined(parts: Sequence[Written]) -> list[Written]:
    """The parts with commas between them."""
    return [one for part in parts for one in (COMMA, part)][1:]
