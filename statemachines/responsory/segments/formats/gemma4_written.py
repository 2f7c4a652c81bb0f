"""An object as Gemma writes it, as a grammar made of the schema of its tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.segments.formats.schema_written import (
    Notation,
    SchemaWriter,
    own_text,
    text_regexes,
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
LONGEST_KEY = 4000
"""Characters of one; of longer ones the reader would give up."""
KEY = Matching(r"[A-Za-z_][A-Za-z0-9_]{0,40}")


class Gemma(Notation):
    """Values with a quote of their own, and keys without quotes."""

    @property
    def string(self) -> Written:
        """See ``Notation``."""
        return STRING

    def text(self, schema: Mapping[str, JSON], tool: Tool) -> Written | None:
        """Between such quotes text is as it stands."""
        regexes = text_regexes(schema)
        if regexes is None:
            return None
        return InOrder((QUOTE, TextWithout((END,), regexes=regexes, place=tool.place), QUOTE))

    def listed(self, value: JSON) -> Written | None:
        """Text that has the quote in it cannot be written, and some names cannot."""
        text = _spelled(value)
        return None if text is None else Exactly(text)

    def key(self, name: str) -> Written | None:
        """See ``Notation``."""
        return Exactly(f"{name}:") if _is_key(name) else None

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
    gemma = Gemma()
    fields = SchemaWriter(gemma, tool).fields(gemma.key, gemma.any_key, gemma.comma)
    return InOrder((Exactly("{"), fields, Exactly("}")))


def _is_key(name: str) -> bool:
    """Whether it is read as a key as it is."""
    bare = name == name.strip() and len(name) < LONGEST_KEY
    return bare and END not in name and ":" not in name and not name.startswith(("}", "{"))


def _spelled(value: JSON) -> str | None:
    """A value as Gemma writes it; None if it cannot be."""
    if isinstance(value, str):
        return None if END in value else f"{END}{value}{END}"
    if isinstance(value, list):
        items = [_spelled(one) for one in value]
        return None if None in items else f"[{','.join(filter(None, items))}]"
    if isinstance(value, Mapping):
        pairs = [(key, _spelled(one)) for key, one in value.items()]
        if any(one is None or not _is_key(key) for key, one in pairs):
            return None
        return f"{{{','.join(f'{key}:{one}' for key, one in pairs)}}}"
    return json.dumps(value)
