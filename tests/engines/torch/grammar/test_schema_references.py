"""References inside a schema: followed, and taken along with a part of it."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from responsory.segments.formats.references import referred, self_contained
from responsory.segments.formats.value_types import ALL, property_types

ROOT: dict[str, Any] = {
    "properties": {
        "tree": {"$ref": "#/$defs/a~1b c"},
        "same": {"$ref": "#/properties/short"},
        "short": {"type": "string", "maxLength": 3},
        "all": {"$ref": "#"},
    },
    "required": ["short"],
    "$defs": {
        "a/b c": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/a~1b%20c"}, "short": {"$ref": "#/$defs/s"}},
            "additionalProperties": False,
        },
        "s": {"$ref": "#/properties/short"},
        "unused": {"type": "null"},
    },
}


@pytest.mark.parametrize("name", ["tree", "same", "all"])
@pytest.mark.parametrize(
    "value", [{"next": {"short": "abc"}}, {"short": "abcd"}, {"next": 1}, "abc", "abcd", {"x": 1}]
)
def test_a_part_by_itself_allows_what_it_allows_in_its_place(name: str, value: Any) -> None:
    alone = self_contained(ROOT, ROOT["properties"][name])
    assert "unused" not in str(alone)
    in_place = jsonschema.Draft202012Validator(ROOT).is_valid({"short": "a", name: value})
    assert jsonschema.Draft202012Validator(alone).is_valid(value) == in_place


@pytest.mark.parametrize("reference", ["#/$defs/none", "#anchor", "https://a.test/s", 3, ""])
def test_what_is_not_there_allows_nothing(reference: Any) -> None:
    assert not jsonschema.Draft202012Validator(referred(ROOT, reference)).is_valid({})


def test_types_are_those_of_every_alternative_at_the_top() -> None:
    either: dict[str, Any] = {
        "anyOf": [{"properties": {"a": {"type": "null"}}}, {"$ref": "#/$defs/r"}],
        "$defs": {"r": {"properties": {"a": {"type": "boolean"}}}},
    }
    assert property_types(either, "a") == {"null", "boolean"}
    assert property_types(either, "b") == ALL
