"""Whatever a schema says: arguments that are drawn from the form of a strict tool hold to it.

In each family of calls, a tool with the schema gets texts of random tokens, and the segmenter reads
them, whole and by the character. A schema that a family cannot hold arguments to is refused.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from antiphon.engines.torch.grammar.refused import GrammarRefused
from engines.torch.grammar.writing import a_grammar, write
from responsory.commands import CallClosed, CallInput, CallOpened, Text
from responsory.segments import Piece, Segmenter, Tool, Tools, answer_written, family
from responsory.segments.formats import CALLS
from responsory.segments.written import Unwritable, as_json

SEEDS = range(2)
BOOLEAN: dict[str, Any] = {"type": "boolean"}
SHORT: dict[str, Any] = {"type": "string", "maxLength": 4}


def of(required: list[str] | None = None, /, **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties."""
    needed = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": needed}


def closed(**properties: Any) -> dict[str, Any]:
    return {**of(**properties), "additionalProperties": False}


def named(name: str) -> dict[str, Any]:
    return closed(**{name: BOOLEAN})


SCHEMAS: dict[str, dict[str, Any]] = {
    "string or null": closed(a={"type": ["string", "null"], "maxLength": 5}),
    "anyOf string, null": closed(a={"anyOf": [SHORT, {"type": "null"}], "title": "A"}),
    "string or bounded integer": closed(
        a={"type": ["string", "integer"], "maxLength": 4, "minimum": 0, "maximum": 99}
    ),
    "string or object": closed(a={"anyOf": [SHORT, closed(b=BOOLEAN)]}),
    "string or array": closed(
        a={"anyOf": [SHORT, {"type": "array", "items": SHORT, "maxItems": 2}]}
    ),
    "oneOf": closed(a={"oneOf": [SHORT, {"type": "integer", "minimum": 0, "maximum": 9}]}),
    "values of many types": closed(a={"enum": ["1", 1, None, "null", "true", True, 1.5, "x y"]}),
    "values with look-alikes": closed(
        a={"enum": ["null", "1", "[1]", " lead", "nl\n", '<|"|>', "'q'", '"', "\\", "é😀", "",
                    "</parameter>", "</arg_value>", "a</parameter>\n<parameter=b>"]}
    ),
    "values of one type": closed(a={"type": "integer", "enum": [1, "x", 2]}),
    "values beside a length": closed(a={"type": "string", "enum": ["a", "bbbbbb"], "maxLength": 2}),
    "one value": closed(a={"const": {"x y": [1, "'", None, True]}}),
    "referred string": {**closed(a={"$ref": "#/$defs/s"}), "$defs": {"s": SHORT}},
    "referred values": {
        **closed(a={"$ref": "#/$defs/s"}), "$defs": {"s": {"enum": ["null", "5"]}},
    },
    "referred property": closed(a={"type": "integer", "minimum": 0, "maximum": 3},
                                b={"$ref": "#/properties/a"}),
    "itself": {**of(["v"], v=BOOLEAN, n={"$ref": "#"}), "additionalProperties": False},
    "a tree": {
        **closed(n={"$ref": "#/$defs/n"}),
        "$defs": {"n": of(["v"], v=BOOLEAN, n={"anyOf": [{"$ref": "#/$defs/n"},
                                                        {"type": "null"}]})},
    },
    "referred top": {"$ref": "#/$defs/r", "$defs": {"r": closed(a=BOOLEAN)}},
    "either top": {"anyOf": [closed(a=BOOLEAN), closed(b=SHORT)]},
    "either, typed": {"type": "object", "anyOf": [closed(a=BOOLEAN), closed(b=BOOLEAN)]},
    "least properties": {**of([], a=BOOLEAN), "minProperties": 1},
    "only others": {"type": "object", "additionalProperties": BOOLEAN, "minProperties": 1},
    "required and not described": of(["a", "zz"], a=BOOLEAN),
    "pattern and length": closed(a={"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}),
    "pattern with marks": closed(a={"type": "string", "pattern": "^[a-z\n<>'\"\\\\/]{1,6}$"}),
    "found pattern": closed(a={"type": "string", "pattern": "b", "maxLength": 9}),
    "format": closed(a={"type": "string", "format": "date"}),
    "anything": closed(a={}),
    "nested": closed(a={"type": "array", "items": SHORT, "minItems": 1, "maxItems": 2}),
    "pair": closed(a={"type": "array", "prefixItems": [BOOLEAN, SHORT], "minItems": 2,
                      "maxItems": 2}),
    "name with a space": named("my key"),
    "name with a dash": named("my-key"),
    "name with a colon": named("a:b"),
    "name with a bracket": named("a>b"),
    "name of another script": named("日本"),
    "name with a quote": named('a"b'),
    "name of a line": named("a\nb"),
    "no name": named(""),
    "name between spaces": named(" a "),
    "names inside": closed(a=closed(**{"x y": BOOLEAN, "p:q": BOOLEAN, "'": BOOLEAN})),
}  # fmt: skip


def drawn(name: str, tool: Tool) -> list[str] | None:
    """Texts with a call of the tool; None where it is refused."""
    try:
        node = json.dumps(as_json(answer_written(family(name), [tool], forced=True, most=1)))
        texts = [write(a_grammar("calls", node), seed, most=150) for seed in SEEDS]
    except (Unwritable, GrammarRefused):
        return None
    return [text.decode() for text, whole in texts if whole]


def arguments(name: str, pieces: list[str], tool: Tool) -> str:
    """Those of the one call, and nothing else is in the text."""
    segmenter = Segmenter(family(name), tools=Tools([tool]))
    written, seen = "", []
    for segment in [*segmenter.feed([Piece(piece) for piece in pieces]), *segmenter.finish()]:
        seen.append(type(segment))
        if isinstance(segment, CallInput):
            written += segment.text
    assert Text not in seen
    assert (seen.count(CallOpened), seen.count(CallClosed)) == (1, 1)
    return written or "{}"


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "free"])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_is_drawn_holds_to_the_schema(name: str, strict: bool) -> None:
    ended, refused = 0, []
    for says, schema in SCHEMAS.items():
        tool = Tool("get", parameters=schema, strict=strict, place="tools[0]")
        texts = drawn(name, tool)
        if texts is None:
            refused.append(says)
            continue
        ended += len(texts)
        for text in texts:
            read = {arguments(name, pieces, tool) for pieces in ([text], list(text))}
            assert len(read) == 1, (says, text)
            value = json.loads(read.pop())
            if strict:
                jsonschema.validate(value, schema)
            assert isinstance(value, dict)
    assert ended > 20
    assert len(refused) < (25 if strict else 1), refused
