"""A call between tags as a grammar, made of the schema of its tool.

Text between tags has no quotes, so what a value is, its reader tells by its looks. A string is
therefore written as text that looks like nothing else that the schema allows, and any other value
as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.immutable import immutable
from responsory.segments.formats.argument_shapes import NOTES, Shape, listed_values, shapes
from responsory.segments.formats.references import referred, self_contained
from responsory.segments.formats.schema_written import TEXTS, own_text, text_regexes
from responsory.segments.formats.tagged_value import LOOKS, as_json
from responsory.segments.formats.value_types import property_types, schema_types
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    Matching,
    OneOf,
    TextWithout,
    Times,
    Unwritable,
)

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.segments.written import Written
    from responsory.values import JSON

KEY = r"[A-Za-z_][A-Za-z0-9_]{0,40}"
"""A parameter of which the schema says nothing."""
DEEPEST = 12
"""References and alternatives inside each other that are followed."""
MOST_PARTS = 2_000
"""Parts of a tool's schema that are looked at."""


@immutable
class TagsWritten:
    """How a model writes such a call, from its name on: what stands before and behind the name, a
    key (of a string, of another value) and a value, and at the end."""

    name: tuple[str, str]
    key: tuple[str, str, str]
    value: str
    end: str

    @property
    def flagged(self) -> bool:
        """Whether a parameter tells if it is a string."""
        return self.key[1] != self.key[2]


@immutable
class Way:
    """One way to write a value; ``string``: it is read as one."""

    text: Written
    string: bool


def tagged_written(
    tags: TagsWritten, value_end: str, tools: Sequence[Tool], is_key: Callable[[str], bool]
) -> Written:
    """One call of one of the tools. ``is_key``: whether a name is read as the key that it is.

    Raises ``Unwritable`` for what a strict tool asks in vain.
    """
    return OneOf(tuple([_Call(tags, value_end, tool, is_key).written() for tool in tools]))


class _Call:
    def __init__(
        self, tags: TagsWritten, value_end: str, tool: Tool, is_key: Callable[[str], bool]
    ) -> None:
        self._tags = tags
        self._end = value_end
        self._tool = tool
        self._is_key = is_key
        self._root: Mapping[str, JSON] = tool.parameters or {}
        self._parts = 0

    def written(self) -> Written:
        before, behind = self._tags.name
        head, end = Exactly(before + self._tool.name + behind), Exactly(self._tags.end)
        if self._tool.kind == "custom":
            grammar = self._tool.grammar
            own = self._text() if grammar is None else own_text(grammar, self._end)
            return InOrder((head, self._parameter(Exactly("input"), [Way(own, True)]), end))
        ways = [InOrder(tuple(self._parameters(shape))) for shape in shapes(self._tool)]
        return InOrder((head, OneOf(tuple(ways)), end))

    def _parameters(self, shape: Shape) -> list[Written]:
        made: list[Written] = []
        for name, part in shape.properties.items():
            if not self._is_key(name):
                self._refuse(name, f"this model's form cannot write the name {name!r}")
                continue
            types = property_types(self._root, name)
            one = self._parameter(Exactly(name), self._ways(part, types, name, 0))
            made.append(one if name in shape.required else Times(one, 0, 1))
        if shape.other is not None:
            ways = self._ways(shape.other, property_types(self._root, ""), "", 0)
            made.append(Times(self._parameter(Matching(KEY), ways)))
        return made

    def _parameter(self, key: Written, ways: Sequence[Way]) -> Written:
        before, of_string, of_other = self._tags.key
        end = Exactly(self._tags.value)
        made: list[Written] = []
        for string in (True, False):
            texts = tuple([way.text for way in ways if way.string is string])
            if texts:
                behind = Exactly(of_string if string else of_other)
                value = texts[0] if len(texts) == 1 else OneOf(texts)
                made.append(InOrder((Exactly(before), key, behind, value, end)))
        return made[0] if len(made) == 1 else OneOf(tuple(made))

    def _refuse(self, place: str, reason: str) -> None:
        if self._tool.strict:
            raise Unwritable(self._tool.place, f"{place or 'at the top'}: {reason}")

    def _any(self, place: str, reason: str) -> list[Way]:
        """Ways to write any value, for what is not held to anything. Raises for a strict tool."""
        self._refuse(place, reason)
        return self._anything()

    def _anything(self) -> list[Way]:
        free = Way(TextWithout((self._end,)), string=True)
        return [free, Way(JsonText({}), string=False)] if self._tags.flagged else [free]

    def _ways(self, schema: JSON, types: frozenset[str], place: str, depth: int) -> list[Way]:
        """How to write a value of the schema that is read as one of the types."""
        self._parts += 1
        if self._parts > MOST_PARTS or depth > DEEPEST:
            return self._any(place, "it is too large, or nested too deeply, for this model's form")
        if not isinstance(schema, Mapping):
            return self._anything() if schema is not False else self._any(place, "nothing holds")
        said = schema.keys() - NOTES
        if not said:
            return self._anything()
        if said == {"$ref"}:
            return self._ways(referred(self._root, schema["$ref"]), types, place, depth + 1)
        if (listed := listed_values(schema)) is not None:
            none = "this model's form can write none of the values"
            return self._listed(listed, types) or self._any(place, none)
        if said == {"anyOf"} or (said == {"oneOf"} and self._apart(schema["oneOf"])):
            (key,) = said
            parts = schema[key]
            if isinstance(parts, list) and parts:
                each = [self._ways(part, types, place, depth + 1) for part in parts]
                return [way for ways in each for way in ways]
        named = schema.get("type")
        if isinstance(named, str):
            named = [named]
        if not isinstance(named, list):
            kinds = schema_types(self._root, schema)
            if "string" in kinds and not (kinds <= {"string"} and said <= TEXTS):
                words = "this model's form cannot tell text from other values by"
                return self._any(place, f"{words} {', '.join(sorted(said))}")
            named = sorted(kinds)
        return self._typed(schema, [one for one in named if isinstance(one, str)], types, place)

    def _typed(
        self, schema: Mapping[str, JSON], named: list[str], types: frozenset[str], place: str
    ) -> list[Way]:
        """A schema of these types by name."""
        ways: list[Way] = []
        others = [one for one in named if one != "string"]
        if len(others) < len(named):
            said = schema.keys() - NOTES - {"type"}
            text = {key: schema[key] for key in said & TEXTS}
            beyond = set() if others else said - TEXTS
            regexes = text_regexes(text)
            if regexes is None or beyond:
                words = ", ".join(sorted(beyond or text))
                self._refuse(place, f"this model's form cannot hold text to {words}")
            ways.append(Way(self._text(types, regexes or ()), string=True))
        if others:
            kept = {key: value for key, value in schema.items() if key not in TEXTS}
            kinds: JSON = others[0] if len(others) == 1 else others
            inside = self_contained(self._root, {**kept, "type": kinds})
            whole = JsonText(json.loads(json.dumps(inside)), self._tool.strict, self._tool.place)
            ways.append(Way(whole, string=False))
        return ways

    def _text(self, types: frozenset[str] = frozenset(), regexes: Sequence[str] = ()) -> Written:
        """Text that is read as a string where the value may be of these types."""
        looks = [] if self._tags.flagged else [LOOKS[one] for one in sorted(types) if one in LOOKS]
        return TextWithout(
            (self._end,),
            regexes=tuple(regexes),
            never=f"(?:{'|'.join(looks)})" if looks else "",
            place=self._tool.place if regexes else "",
        )

    def _listed(self, values: Sequence[JSON], types: frozenset[str]) -> list[Way]:
        """Those of the values that are read as what they are."""
        ways = []
        for value in values:
            string = isinstance(value, str)
            meant = json.dumps(value, ensure_ascii=False)
            text = value if isinstance(value, str) else meant
            known = self._tags.flagged or as_json(text, types) == meant
            if known and self._end not in text:
                ways.append(Way(Exactly(text), string))
        return ways

    def _apart(self, parts: JSON) -> bool:
        """Whether no value can be of two of the parts."""
        if not self._tool.strict:
            return True
        kinds = [schema_types(self._root, one) for one in parts] if isinstance(parts, list) else []
        return sum(map(len, kinds)) == len(frozenset[str]().union(*kinds))
