"""A call as Python writes it, as a grammar made of the schema of its tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.segments.formats.schema_written import Notation, SchemaWriter, with_any_value
from responsory.segments.written import Exactly, InJsonString, InOrder, JsonText, Matching, OneOf

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

KEYWORD = re.compile(r"[^\W\d][\w.-]*")
STRING = Matching(r"'([^'\\\x00-\x1f]|\\[nt'\\])*'")
ANY_KEYWORD = InOrder((Matching(r"[A-Za-z_][A-Za-z0-9_]{0,40}"), Exactly("=")))


class Python(Notation):
    """Literals of Python."""

    true, false, null, comma = "True", "False", "None", ", "

    @property
    def string(self) -> Written:
        """See ``Notation``."""
        return STRING

    def text(self, schema: Mapping[str, JSON], tool: Tool) -> Written:
        """In double quotes, where Python reads what JSON writes."""
        return JsonText(schema, tool.strict, tool.place)

    def listed(self, value: JSON) -> Written:
        """See ``Notation``."""
        return Exactly(_literal(value))

    def key(self, name: str) -> Written:
        """See ``Notation``."""
        return Exactly(f"{_literal(name)}: ")

    @property
    def any_key(self) -> Written:
        """See ``Notation``."""
        return InOrder((STRING, Exactly(": ")))


def python_calls(tools: Sequence[Tool]) -> Written:
    """A call of one of the tools."""
    return with_any_value(Python(), OneOf(tuple(map(_call, tools))))


def _call(tool: Tool) -> Written:
    """``name(key=value, …)``."""
    if tool.kind == "custom":
        text = STRING if tool.grammar is None else InJsonString(tool.grammar)
        inside: Written = InOrder((Exactly("input="), text))
    else:
        inside = SchemaWriter(Python(), tool).fields(_keyword, ANY_KEYWORD, ", ")
    return InOrder((Exactly(f"{tool.name}("), inside, Exactly(")")))


def _keyword(name: str) -> Written | None:
    """The name of an argument."""
    return Exactly(f"{name}=") if KEYWORD.fullmatch(name) else None


def _literal(value: JSON) -> str:
    """As Python writes it, text between single quotes."""
    if isinstance(value, str):
        inner = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return f"'{inner}'"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    return repr(value)
