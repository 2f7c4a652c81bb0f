"""Values of a JSON Schema in another notation than JSON, as a grammar.

Only named properties are written, in the schema's order. What a notation cannot be held to, as a
pattern where text has no quotes, stands for any value; of a strict tool it is refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from responsory.immutable import immutable
from responsory.segments.formats.argument_shapes import (
    NOTES,
    OBJECT,
    Shape,
    listed_values,
    shape_of,
    shapes,
)
from responsory.segments.formats.references import referred
from responsory.segments.written import (
    Exactly,
    InOrder,
    JsonText,
    OneOf,
    OwnGrammar,
    Rule,
    Rules,
    TextWithout,
    Times,
    Unwritable,
    Written,
    searched,
)

if TYPE_CHECKING:
    from responsory.segments.tools import Tool
    from responsory.values import JSON

ANY = "any_value"
DEEPEST = 12
"""Levels of a schema that are followed; below that any value may stand."""
MOST_PARTS = 2_000
"""Parts of a schema that are followed, those that are referred to each time."""

NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
TEXTS = frozenset({"pattern", "format", "minLength", "maxLength"})
SAID: Mapping[str, frozenset[str]] = {
    "object": OBJECT,
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": TEXTS,
    "integer": NUMBERS,
    "number": NUMBERS,
    "boolean": frozenset(),
    "null": frozenset(),
}
"""Types, and the keywords beside them that are held to."""


class Notation(ABC):
    """How a family writes values. ``true``, ``false``, ``null``: its words; ``comma``: what it
    writes between two values."""

    true = "true"
    false = "false"
    null = "null"
    comma = ","

    @property
    @abstractmethod
    def string(self) -> Written:
        """Any text."""

    @abstractmethod
    def text(self, schema: Mapping[str, JSON], tool: Tool) -> Written | None:
        """Text that holds to a schema with some of ``TEXTS``, which is of ``tool``; None where that
        cannot be told."""

    @abstractmethod
    def listed(self, value: JSON) -> Written | None:
        """One value; None where it cannot be written."""

    @abstractmethod
    def key(self, name: str) -> Written | None:
        """The key of a property in an object, and what stands between it and the value; None where
        no key has that name."""

    @property
    @abstractmethod
    def any_key(self) -> Written:
        """The same of any name."""


@immutable
class Keys:
    """How the keys of an object are written: one by its name, any, and what stands before the
    next."""

    named: Callable[[str], Written | None]
    any: Written
    comma: str


def some(between: str, part: Written, least: int, most: int | None) -> Written:
    """So many, with commas between them."""
    if most == 0:
        return Exactly("")
    comma = Exactly(between)
    rest = None if most is None else most - 1
    more = Times(InOrder((comma, part)), max(least - 1, 0), rest)
    return Times(InOrder((part, more)), min(least, 1), 1)


def with_any_value(notation: Notation, start: Written) -> Written:
    """``start``, which may refer to any value in the notation."""
    pair = InOrder((notation.any_key, Rule(ANY)))
    listed = InOrder((Exactly("["), some(notation.comma, Rule(ANY), 0, None), Exactly("]")))
    mapped = InOrder((Exactly("{"), some(notation.comma, pair, 0, None), Exactly("}")))
    words = [Exactly(word) for word in (notation.true, notation.false, notation.null)]
    number = JsonText({"type": "number"})
    return Rules(start, {ANY: OneOf((notation.string, number, *words, listed, mapped))})


class SchemaWriter:
    """Writes what one tool takes, inside of ``with_any_value``.

    Raises ``Unwritable`` for what a strict one asks in vain.
    """

    def __init__(self, notation: Notation, tool: Tool) -> None:
        self._notation = notation
        self._root: Mapping[str, JSON] = tool.parameters or {}
        self._tool = tool
        self._parts = 0

    def fields(
        self, key: Callable[[str], Written | None], any_key: Written, between: str
    ) -> Written:
        """The arguments alone: ``key`` is what stands before each, None where that has no name."""
        keys = Keys(key, any_key, between)
        return OneOf(tuple([self._fields(shape, "", 0, keys) for shape in shapes(self._tool)]))

    def _any(self, place: str, reason: str) -> Written:
        if self._tool.strict:
            raise Unwritable(self._tool.place, f"{place or 'at the top'}: {reason}")
        return Rule(ANY)

    def _value(self, schema: JSON, place: str, depth: int) -> Written:
        self._parts += 1
        if self._parts > MOST_PARTS or depth > DEEPEST:
            return self._any(place, "it is too large, or nested too deeply, for this model's form")
        if schema is True or schema == {}:
            return Rule(ANY)
        if not isinstance(schema, Mapping):
            return self._any(place, "no value holds to it")
        said = schema.keys() - NOTES
        notation = self._notation
        if (values := listed_values(schema)) is not None:
            made = [one for one in map(notation.listed, values) if one is not None]
            if made:
                return OneOf(tuple(made))
            return self._any(place, "this model's form can write none of the values")
        if said == {"anyOf"} or (said == {"oneOf"} and not self._tool.strict):
            (key,) = said
            parts = schema[key]
            if isinstance(parts, list) and parts:
                within = f"{place}/{key}"
                return OneOf(
                    tuple([self._value(one, f"{within}/{i}", depth) for i, one in enumerate(parts)])
                )
        if said == {"$ref"}:
            return self._value(referred(self._root, schema["$ref"]), place, depth + 1)
        types = schema.get("type")
        if isinstance(types, list) and types:
            kept = [{**_only(schema, one), "type": one} for one in types if isinstance(one, str)]
            return OneOf(tuple([self._value(one, place, depth) for one in kept]))
        if not isinstance(types, str):
            types = "object" if "properties" in said else ""
        if types not in SAID or not said <= SAID[types] | {"type"}:
            beyond = sorted(said - SAID.get(types, frozenset()) - {"type"})
            free = self._any(place, f"this model's form cannot be held to {', '.join(beyond)}")
            if types not in SAID:
                return free
            schema = {key: schema[key] for key in said & {*SAID[types], "type"}}
        return self._typed(types, schema, place, depth)

    def _typed(self, name: str, schema: Mapping[str, JSON], place: str, depth: int) -> Written:
        notation = self._notation
        match name:
            case "object":
                return self._object(schema, place, depth)
            case "array":
                item = self._value(schema.get("items", True), f"{place}/items", depth + 1)
                least, most = schema.get("minItems", 0), schema.get("maxItems")
                count = None if most is None else _count(most)
                items = some(notation.comma, item, _count(least), count)
                return InOrder((Exactly("["), items, Exactly("]")))
            case "string":
                if not schema.keys() & TEXTS:
                    return notation.string
                kept = {key: schema[key] for key in schema.keys() & {*TEXTS, "type"}}
                if (text := notation.text(kept, self._tool)) is not None:
                    return text
                self._any(place, f"this model's form cannot hold text to {' and '.join(kept)}")
                return notation.string
            case "boolean":
                return OneOf((Exactly(notation.true), Exactly(notation.false)))
            case "null":
                return Exactly(notation.null)
            case _:
                return self._number(schema)

    def _number(self, schema: Mapping[str, JSON]) -> Written:
        numbers = {key: schema[key] for key in schema.keys() & {*NUMBERS, "type"}}
        return JsonText(numbers, self._tool.strict, self._tool.place)

    def _object(self, schema: Mapping[str, JSON], place: str, depth: int) -> Written:
        notation = self._notation
        keys = Keys(notation.key, notation.any_key, notation.comma)
        inside = self._fields(shape_of(schema, self._tool, place), place, depth, keys)
        return InOrder((Exactly("{"), inside, Exactly("}")))

    def _fields(self, shape: Shape, place: str, depth: int, keys: Keys) -> Written:
        """The properties, those that are not required perhaps."""
        if shape.other is not None:
            value = self._value(shape.other, f"{place}/additionalProperties", depth + 1)
            return some(keys.comma, InOrder((keys.any, value)), 0, None)
        fields: list[tuple[Written, bool]] = []
        for name, part in shape.properties.items():
            head = keys.named(name)
            if head is None:
                self._any(place, f"this model's form cannot write the name {name!r}")
                continue
            value = self._value(part, f"{place}/properties/{name}", depth + 1)
            fields.append((InOrder((head, value)), name in shape.required))
        return _in_turn(fields, Exactly(keys.comma))


def _in_turn(fields: Sequence[tuple[Written, bool]], comma: Written) -> Written:
    """The fields one after another, with commas; those that need not come, perhaps.

    What comes first has no comma before it: before the first that must come, each may be that.
    """
    head: list[Written] = []
    for at, (field, needed) in enumerate(fields):
        if needed:
            rest = [
                InOrder((comma, one)) if must else Times(InOrder((comma, one)), 0, 1)
                for one, must in fields[at + 1 :]
            ]
            before = [Times(InOrder((one, comma)), 0, 1) for one in head]
            return InOrder((*before, field, *rest))
        head.append(field)
    ways: list[Written] = [Exactly("")]
    for at, field in enumerate(head):
        ways.append(
            InOrder((field, *(Times(InOrder((comma, one)), 0, 1) for one in head[at + 1 :])))
        )
    return OneOf(tuple(ways))


def _only(schema: Mapping[str, JSON], name: str) -> dict[str, JSON]:
    """Of a schema of several types, what is about one of them."""
    others = frozenset().union(*SAID.values()) - SAID.get(name, frozenset())
    return {key: value for key, value in schema.items() if key not in others}


def own_text(grammar: OwnGrammar, end: str) -> Written:
    """Text of a custom tool's grammar, as it stands, that goes on to ``end``."""
    if grammar.syntax == "regex":
        return TextWithout((end,), regexes=(grammar.definition,), place=grammar.place)
    return grammar


def text_regexes(schema: Mapping[str, JSON]) -> tuple[str, ...] | None:
    """What matches the text that holds to a schema with some of ``TEXTS``, all of it together; None
    where no expressions say that."""
    if "format" in schema:
        return None
    made = (searched(str(schema["pattern"])),) if "pattern" in schema else ()
    if not schema.keys() & {"minLength", "maxLength"}:
        return made
    most = schema.get("maxLength")
    counts = f"{_count(schema.get('minLength', 0))},{'' if most is None else _count(most)}"
    return (*made, f"(?s:.){{{counts}}}")


def _count(value: JSON) -> int:
    return int(value) if isinstance(value, int | float) else 0
