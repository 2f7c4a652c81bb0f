"""What a segmenter is told of the tools that a request declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import attrs

from responsory.checks import one_of, valid
from responsory.commands import CallOpened
from responsory.immutable import immutable

if TYPE_CHECKING:
    from responsory.segments.written import OwnGrammar
    from responsory.values import JSON


@immutable
class Tool:
    """A declared tool.

    ``parameters``: the JSON Schema of a function's arguments, which types what a family writes
    without types; None if nothing is known of them. ``strict``: a model that is held to it is held
    to all it says. A ``custom`` tool takes text, which a model writes as a function of one string,
    the ``input``; ``grammar`` is that of the text. ``place``: where the schema or the grammar
    stands in the request, for refusals.
    """

    name: str
    kind: Literal["function", "custom"] = attrs.field(  # pyright: ignore[reportAssignmentType]
        default="function", validator=valid(one_of("function", "custom"))
    )
    parameters: Mapping[str, JSON] | None = None
    strict: bool = False
    grammar: OwnGrammar | None = None
    place: str = ""


class Tools:
    """The tools by name. ``only``: the names that can be called; what would call another one is
    text. None: any name, declared or not."""

    __slots__ = ("_tools", "only")

    def __init__(self, tools: Iterable[Tool] = (), *, only: Iterable[str] | None = None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.only = None if only is None else frozenset(only)

    def opened(self, name: str | None, call_id: str | None = None) -> CallOpened | None:
        """The call of that name; None where that is no name, or none that can be called."""
        if name is None or (self.only is not None and name not in self.only):
            return None
        tool = self._tools.get(name)
        try:
            return CallOpened("function" if tool is None else tool.kind, name, call_id)
        except ValueError:
            return None

    @property
    def custom(self) -> bool:
        """Some tool is a custom one."""
        return any(tool.kind == "custom" for tool in self._tools.values())

    def parameters(self, name: str) -> Mapping[str, JSON] | None:
        """The schema of its arguments, where one is known."""
        tool = self._tools.get(name)
        return None if tool is None else tool.parameters


NO_TOOLS = Tools()
"""Nothing is known of any tool: each call is one of a function."""
