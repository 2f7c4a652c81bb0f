"""The shapes of items, parts and the response itself, and what their values must be when added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from responsory.check.shapes import (
    INDEX,
    INTEGER,
    LIST,
    NAME,
    OBJECT,
    STRING,
    Shape,
    check_entries,
    constant,
)

if TYPE_CHECKING:
    from responsory.check.judge import Judge

TYPE = {"type": STRING}
STATUS = {"status": STRING}
CALL = {**TYPE, "call_id": NAME, "name": STRING}
ITEM_SHAPES: Mapping[str, Shape] = {
    "message": Shape(
        {**TYPE, "id": NAME, "role": constant("assistant"), "content": LIST},
        STATUS,
        {"phase": STRING},
    ),
    "reasoning": Shape(
        {**TYPE, "id": NAME},
        {**STATUS, "summary": LIST, "content": LIST},
        {"encrypted_content": STRING},
    ),
    "function_call": Shape({**CALL, "arguments": STRING}, {"id": NAME, **STATUS}),
    "custom_tool_call": Shape({**CALL, "input": STRING}, {"id": NAME, **STATUS}),
}
OPAQUE = Shape(TYPE, open=True)
"""An item or part of an unknown type."""

PART_SHAPES: Mapping[str, Shape] = {
    "output_text": Shape({**TYPE, "text": STRING}, {"annotations": LIST, "logprobs": LIST}),
    "refusal": Shape({**TYPE, "refusal": STRING}),
    "reasoning_text": Shape({**TYPE, "text": STRING}),
    "summary_text": Shape({**TYPE, "text": STRING}),
}

RESPONSE = Shape(
    {"id": NAME, "output": LIST},
    {
        "object": constant("response"),
        "created_at": INTEGER,
        "completed_at": INTEGER.or_null(),
        "status": STRING,
        "error": OBJECT.or_null(),
        "incomplete_details": OBJECT.or_null(),
        "usage": OBJECT.or_null(),
        "model": STRING,
    },
    exact={"created_at": INDEX, "completed_at": INDEX.or_null()},
    # From ``model`` on it tells of the request, and how much of that is the server's choice.
    open=True,
)
RESPONSE_ERROR = Shape({"message": STRING}, {"code": STRING})
ERROR_BODY = Shape({"code": STRING, "message": STRING, "param": STRING.or_null(), "type": STRING})


def check_item(judge: Judge, item: dict[str, Any]) -> None:
    """The keys of an item, and of its parts where they are known."""
    OPAQUE.check(judge, item, "an item")
    shape = ITEM_SHAPES.get(item["type"])
    if shape is None:
        judge.broken("own-types", f"an item of type {json.dumps(item['type'])}")
        return
    shape.check(judge, item, f"the {item['type']} item")
    for part in parts_of(item):
        check_part(judge, part, item["type"])


def check_part(judge: Judge, part: Any, owner: str) -> None:
    """The keys of a part of an ``owner`` item."""
    OPAQUE.check(judge, part, "a part")
    shape = PART_SHAPES.get(part["type"])
    if shape is None:
        judge.broken("own-types", f"a part of type {json.dumps(part['type'])} in a {owner} item")
        return
    shape.check(judge, part, f"the {part['type']} part")
    check_entries(judge, part.get("logprobs") or [])


def parts_of(item: Mapping[str, Any]) -> list[Any]:
    """The parts that the item shows, summaries first."""
    return [*(item.get("summary") or ()), *(item.get("content") or ())]


def is_zero(value: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The first of ``keys`` that is there and not empty, or an empty string."""
    return next((key for key in keys if value.get(key)), "")


def same(first: Any, second: Any) -> bool:
    """Equal as JSON, where 1, 1.0 and true are three values and the order of keys is none."""
    return bool(first == second) and (
        json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    )


def without_ciphertext(item: Any) -> Any:
    """The item with what may be encrypted anew left out, but not whether it is there."""
    if isinstance(item, dict) and isinstance(item.get("encrypted_content"), str):
        return {**item, "encrypted_content": "…"}
    return item
