"""Structured output: the one constraint that a request may put on the text of its answer.

It can come as ``response_format`` (chat, completions), ``text.format`` (Responses), as
``structured_outputs`` (vLLM), or as ``regex``, ``json_schema`` or ``ebnf`` (SGLang).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Length, Pattern, Refused

Kind = Literal["json_object", "json_schema", "regex", "choice", "lark", "gbnf"]
FormatName = Annotated[str, Pattern(r"[A-Za-z0-9_-]{1,64}")]
Source = Annotated[str, Length(1)]

_GBNF_RULE = re.compile(r"^[ \t]*[A-Za-z0-9_-]+[ \t]*::=", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Constraint:
    """What the text of the answer must match.

    ``text`` is the JSON text of the schema, the regular expression, the JSON array of the choices
    or the grammar; empty for ``json_object``. ``param`` is the field that holds it. ``strict``: a
    schema is refused for what an answer cannot be held to; else that is left out.
    """

    kind: Kind
    text: str
    param: str
    strict: bool = False


@attrs.define(kw_only=True)
class FreeText:
    """No constraint."""

    type: Literal["text"]


@attrs.define(kw_only=True)
class JsonObject:
    """Any JSON object."""

    type: Literal["json_object"]


@attrs.define(kw_only=True)
class NamedSchema:
    """The inside of chat's ``json_schema`` format."""

    name: FormatName
    description: str | None = None
    schema: dict[str, Any]
    strict: bool | None = None


@attrs.define(kw_only=True)
class ChatJsonSchema:
    """A JSON Schema, as chat and completions nest it."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


@attrs.define(kw_only=True)
class JsonSchema:
    """A JSON Schema, as Responses writes it."""

    type: Literal["json_schema"]
    name: FormatName
    description: str | None = None
    schema: dict[str, Any]
    strict: bool | None = None


ResponseFormat = FreeText | JsonObject | ChatJsonSchema
TextFormat = FreeText | JsonObject | JsonSchema


@attrs.define(kw_only=True)
class StructuredOutputs:
    """``structured_outputs``: exactly one of the five. ``json`` is an object or its JSON text,
    ``grammar`` is in the dialect of Lark or of GBNF."""

    json: dict[str, Any] | Source | None = None
    regex: Source | None = None
    choice: Annotated[list[Source], Length(1)] | None = None
    grammar: Source | None = None
    json_object: bool | None = None
    structural_tag: Annotated[Any, Refused()] = None
    disable_any_whitespace: Annotated[Any, Refused()] = None
    disable_additional_properties: Annotated[Any, Refused()] = None
    disable_fallback: Annotated[Any, Refused()] = None
    whitespace_pattern: Annotated[Any, Refused()] = None


def of_format(value: ResponseFormat | TextFormat | None, param: str) -> list[Constraint]:
    """The constraint of a format, if it is one; ``param`` is the field of the format."""
    match value:
        case JsonObject():
            return [Constraint(kind="json_object", text="", param=f"{param}.type")]
        case ChatJsonSchema(json_schema=inner):
            path = f"{param}.json_schema.schema"
            return [_of_schema(inner.schema, path, strict=inner.strict)]
        case JsonSchema(schema=schema, strict=strict):
            return [_of_schema(schema, f"{param}.schema", strict=strict)]
        case _:
            return []


def of_outputs(value: StructuredOutputs | None) -> list[Constraint]:
    """The constraints in ``structured_outputs``. Raises ``InvalidRequest`` when it has none."""
    if value is None:
        return []
    found: list[Constraint] = []

    def add(kind: Kind, name: str, text: str | None) -> None:
        if text is not None:
            found.append(Constraint(kind=kind, text=text, param=f"structured_outputs.{name}"))

    if isinstance(value.json, str):
        found.append(of_text(value.json, "structured_outputs.json"))
    elif value.json is not None:
        add("json_schema", "json", _spelled(value.json))
    add("regex", "regex", value.regex)
    add("choice", "choice", None if value.choice is None else _choices(value.choice))
    if value.grammar is not None:
        add(_dialect(value.grammar), "grammar", value.grammar)
    add("json_object", "json_object", "" if value.json_object else None)
    if not found:
        raise InvalidRequest(
            "`structured_outputs` needs one of json, regex, choice, grammar and json_object.",
            code="invalid_value",
            param="structured_outputs",
        )
    return found


def the_one(found: Sequence[Constraint]) -> Constraint | None:
    """The only constraint among ``found``, in the order of the parameters.

    Raises ``InvalidRequest`` for two, naming the second.
    """
    if len(found) > 1:
        first, second = (constraint.param for constraint in found[:2])
        outer = second.partition(".")[0]
        raise InvalidRequest(
            f"`{first}` and `{second}` exclude each other: an answer has one constraint.",
            code="conflicting_parameters",
            param=second if first.startswith(f"{outer}.") else outer,
        )
    return found[0] if found else None


def of_text(schema: str, param: str) -> Constraint:
    """The constraint of a JSON Schema that came as text. Raises ``InvalidRequest``."""
    try:
        value = json.loads(schema)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict | bool):
        raise InvalidRequest(
            f"Invalid `{param}`: it is not the JSON text of a schema.",
            code="invalid_schema",
            param=param,
        )
    return Constraint(kind="json_schema", text=schema, param=param)


def _of_schema(schema: dict[str, Any], param: str, *, strict: bool | None) -> Constraint:
    return Constraint(kind="json_schema", text=_spelled(schema), param=param, strict=bool(strict))


def _choices(choices: Sequence[str]) -> str:
    seen: set[str] = set()
    for index, choice in enumerate(choices):
        if choice in seen:
            raise InvalidRequest(
                f"`structured_outputs.choice[{index}]` has been given before.",
                code="invalid_value",
                param=f"structured_outputs.choice[{index}]",
            )
        seen.add(choice)
    return _spelled(choices)


def _dialect(grammar: str) -> Kind:
    """GBNF writes ``::=`` behind the name of a rule, Lark a colon."""
    return "gbnf" if _GBNF_RULE.search(grammar) else "lark"


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
