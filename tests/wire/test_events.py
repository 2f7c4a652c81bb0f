"""The rules of the Responses stream, on what the server sends for each story and each ending."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from openai.types.responses import ResponseStreamEvent

from wire.stories import STORIES, Story, settled
from wire.told import Told

pytestmark = pytest.mark.parametrize("story", STORIES, ids=str)

TERMINAL = {"response.completed", "response.incomplete", "response.failed"}
KNOWN = {
    get_args(kind.model_fields["type"].annotation)[0]
    for kind in get_args(get_args(ResponseStreamEvent)[0])
}
"""The names that openai-python has a type for."""
ZERO: dict[str, dict[str, Any]] = {
    "message": {"status": "in_progress", "role": "assistant", "content": []},
    "reasoning": {"status": "in_progress", "summary": [], "content": []},
    "function_call": {"arguments": "", "status": "in_progress"},
}
PREFIX = {"message": "msg", "reasoning": "rs", "function_call": "fc"}


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == f"response.{kind}"]


def of_items(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events between the first of an item and its last, for each item."""
    items: list[list[dict[str, Any]]] = []
    for event in events:
        if "output_index" in event:
            if event["type"] == "response.output_item.added":
                items.append([])
            items[-1].append(event)
    return items


@pytest.mark.wire("G1", "G2", "K1", "S12", "I5")
async def test_it_begins_and_ends_once(app: Told, story: Story) -> None:
    events = await story.events(app)
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] in TERMINAL for event in events] == [False] * (len(events) - 1) + [True]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    snapshots = [event["response"] for event in events if "response" in event]
    assert {snapshot["id"] for snapshot in snapshots} == {"resp_t"}
    assert len({snapshot["created_at"] for snapshot in snapshots}) == 1


@pytest.mark.wire("G10", "K7")
async def test_every_name_is_known(app: Told, story: Story) -> None:
    assert {event["type"] for event in await story.events(app)} <= KNOWN


@pytest.mark.wire("G3", "K3", "P8", "P9", "I4", "K4", "K5", "P12", "S13")
async def test_items_come_one_after_another_and_keep_their_names(app: Told, story: Story) -> None:
    events = await story.events(app)
    output = events[-1]["response"]["output"]
    items = of_items(events)
    assert len(items) == len(output)
    for index, (item, final) in enumerate(zip(items, output, strict=True)):
        assert {event["output_index"] for event in item} == {index}
        first, last = item[0]["item"], item[-1]["item"]
        assert item[-1]["type"] == "response.output_item.done"
        assert last == final
        assert first["id"] == final["id"] == f"{PREFIX[final['type']]}_t_{index}"
        assert {event["item_id"] for event in item[1:-1]} == {final["id"]}
        assert {event.get("content_index", 0) for event in item[1:-1]} == {0}
        if final["type"] == "function_call":
            assert first["call_id"] == final["call_id"] == f"call_t_{index}"


@pytest.mark.wire("G4", "K2")
async def test_what_is_added_is_empty(app: Told, story: Story) -> None:
    for item in of_items(await story.events(app)):
        added = item[0]["item"]
        for key, value in ZERO[added["type"]].items():
            assert added[key] == value
        if added["type"] != "function_call":
            assert item[1]["type"] == "response.content_part.added"
            assert item[1]["part"]["text"] == ""


@pytest.mark.wire("G5", "F8", "K6", "S22", "P14", "G6")
async def test_deltas_add_up_and_all_is_closed(app: Told, story: Story) -> None:
    events = await story.events(app)
    for item in of_items(events):
        deltas = [event["delta"] for event in item if "delta" in event]
        assert all(deltas)
        whole, final = "".join(deltas), item[-1]["item"]
        names = [event["type"].removeprefix("response.") for event in item if "delta" not in event]
        if final["type"] == "function_call":
            assert names == [
                "output_item.added",
                "function_call_arguments.done",
                "output_item.done",
            ]
            assert item[-2]["arguments"] == final["arguments"]
            # A call that has no arguments has them nowhere but in the events that close it.
            assert whole == final["arguments"] or (whole, final["arguments"]) == ("", "{}")
        else:
            kind = "output_text" if final["type"] == "message" else "reasoning_text"
            assert names == [
                "output_item.added",
                "content_part.added",
                f"{kind}.done",
                "content_part.done",
                "output_item.done",
            ]
            assert item[-3]["text"] == item[-2]["part"]["text"] == whole
            assert [part["text"] for part in final["content"]] == [whole]


@pytest.mark.wire("G7", "G8", "G9", "P22", "P6", "P16")
async def test_statuses_usage_and_output(app: Told, story: Story) -> None:
    events = await story.events(app)
    response = events[-1]["response"]
    assert events[-1]["type"] == f"response.{response['status']}"
    assert (
        response["status"]
        == {"stop": "completed", "length": "incomplete", "error": "failed"}[story.ends]
    )
    early = [event["response"] for event in events[:-1] if "response" in event]
    assert all((each["usage"], each["output"]) == (None, []) for each in early)
    usage = response["usage"]
    assert usage["input_tokens"] == len(app.engine.requests[0].prompt)
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens"] == len(app.engine.says) - (story.ends == "length")
    statuses = [item["status"] for item in response["output"]]
    assert statuses[:-1] == ["completed"] * len(statuses[:-1])
    if story.ends == "stop":
        assert statuses[-1] == "completed"
    if story.name == "nothing":
        assert len(statuses) == (0 if story.ends == "error" else 1)


@pytest.mark.wire("P11", "P18", "K4")
async def test_markup_is_never_text(app: Told, story: Story) -> None:
    events = await story.events(app)
    text = "".join(event["delta"] for event in events if "delta" in event)
    if story.name != "lookalike":
        assert "<" not in text
        assert "tool_call" not in text
    output = events[-1]["response"]["output"]
    if story.name == "calls" and not story.cut:
        assert [item["type"] for item in output] == ["message", "function_call", "function_call"]
        assert output[0]["content"][0]["text"] == "Both it is."


@pytest.mark.wire("S10", "P6", "I5")
async def test_the_stream_ends_in_the_unary_body(app: Told, story: Story) -> None:
    events = await story.events(app)
    body = await story.tell(app, "responses", stream=False)
    if story.ends == "error":
        assert body["error"]["code"] == "server_error"
    else:
        assert settled(events[-1]["response"]) == settled(body)
        assert list(events[-1]["response"]) == list(body)


@pytest.mark.wire("S21", "P1", "P19", "K8", "K18", "error:server_error")
async def test_a_failure_is_told_twice_with_the_same_words(app: Told, story: Story) -> None:
    events = await story.events(app)
    assert any(event["type"] == "error" for event in events) is (story.ends == "error")
    if story.ends != "error":
        return
    *_, error, failed = events
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    for key in ("code", "message", "param"):
        assert error[key] == error["error"][key]
    assert error["error"]["type"] == "server_error"
    told = failed["response"]["error"]
    assert told == {"code": error["code"], "message": error["message"]}
    assert "own words" not in told["message"]


@pytest.mark.wire("S9", "S10", "P10", "P15")
@pytest.mark.parametrize("grouped", [2, 3, 5, 1000])
async def test_the_steps_do_not_matter(app: Told, story: Story, grouped: int) -> None:
    one = await story.events(app)
    other = await story.events(app, grouped=grouped)
    assert settled(one[-1]["response"]) == settled(other[-1]["response"])
