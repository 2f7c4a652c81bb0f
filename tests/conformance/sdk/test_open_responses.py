"""Every frame of every golden under the profile ``openresponses``, against that specification.

Its models are those of PyPI's ``openresponses-types``, generated from the published schema. They
are checked strictly, and what they leave open is asserted beside them. A key that they do not have
is listed in ``EXTENSIONS``; nothing else may get lost on the way through a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from conformance.sdk.goldens import GOLDEN, RESPONSES, Golden
from conformance.sdk.optional import conformance_package
from responsory import EventLog
from responsory.projections import ResponsesStream
from responsory.testing.folds import DONE, parse

types = conformance_package("openresponses_types")

CUSTOM_CALLS = {"built/custom-call", "built/length-in-custom-input"}
"""Custom tool calls are OpenAI's: the specification has neither the item nor its events."""
EXTENSIONS = {
    "response.user": "a setting that is echoed, as OpenAI's API does",
    "response.prompt_cache_retention": "a setting that is echoed, as OpenAI's API does",
    "response.usage.input_tokens_details.cache_write_tokens": "OpenAI's count of tokens cached",
    "response.output[].status": "of a reasoning item, as OpenAI's API has it",
    "item.status": "of a reasoning item, as OpenAI's API has it",
    "name": "of function_call_arguments.done, as OpenAI's API has it",
    "code": "of an error event, flat: the shape that OpenAI's SDKs declare",
    "message": "of an error event, flat: the shape that OpenAI's SDKs declare",
    "param": "of an error event, flat: the shape that OpenAI's SDKs declare",
}
"""Where, below the frame, there are keys that the schema does not have, and why."""
OF_ONE_EVENT = {
    "name": "response.function_call_arguments.done",
    "code": "error",
    "message": "error",
    "param": "error",
}


def _models() -> Mapping[str, type[BaseModel]]:
    """The models of streaming events by the event's type."""
    found = {}
    for name, model in vars(types).items():
        if name.endswith("StreamingEvent") and issubclass(model, BaseModel):
            (kind,) = model.model_fields["type"].annotation
            found[str(kind.value)] = model
    return found


MODELS = _models()


def frames(golden: Golden) -> list[tuple[str, dict[str, Any]]]:
    """(event name, data) of each frame but ``[DONE]``, rendered from the stored log."""
    with (GOLDEN / golden.case / "log.jsonl").open("rb") as lines:
        log = EventLog.from_lines(lines)
    *shown, last = parse(ResponsesStream(profile="openresponses").feed(0, list(log)))
    assert last == (None, DONE)
    return [(name or "", data) for name, data in shown]


def lost(made: Any, sent: Any, at: str = "") -> Iterator[str]:
    """The places of keys that were sent and did not come through a model; no value may change."""
    if isinstance(made, dict) and isinstance(sent, dict):
        assert made.keys() <= sent.keys()
        for key, value in sent.items():
            place = f"{at}.{key}".removeprefix(".")
            if key in made:
                yield from lost(made[key], value, place)
            else:
                yield place
    elif isinstance(made, list) and isinstance(sent, list):
        for one, other in zip(made, sent, strict=True):
            yield from lost(one, other, f"{at}[]")
    else:
        assert made == sent, at


def through(data: dict[str, Any]) -> set[str]:
    """Validate a frame by its model; the places of keys that the model does not have."""
    model = MODELS[data["type"]].model_validate_json(json.dumps(data), strict=True)
    return set(lost(model.model_dump(mode="json", by_alias=True, exclude_unset=True), data))


@pytest.mark.wire("G10")
@pytest.mark.parametrize("case", sorted(RESPONSES.keys() - CUSTOM_CALLS))
def test_every_frame_is_of_the_specification(case: str) -> None:
    for name, data in frames(RESPONSES[case]):
        assert name == data["type"]
        extensions = through(data)
        assert extensions <= EXTENSIONS.keys()
        for key in extensions & OF_ONE_EVENT.keys():
            assert OF_ONE_EVENT[key] == name
        check_left_open(data)


def test_every_extension_is_used() -> None:
    cases = RESPONSES.keys() - CUSTOM_CALLS
    used = {
        place for case in cases for _, data in frames(RESPONSES[case]) for place in through(data)
    }
    assert used == EXTENSIONS.keys()


@pytest.mark.parametrize("case", sorted(RESPONSES.keys() - CUSTOM_CALLS))
def test_every_body_is_of_the_specification(case: str) -> None:
    body = RESPONSES[case].body
    model = types.ResponseResource.model_validate_json(json.dumps(body), strict=True)
    made = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert {f"response.{place}" for place in lost(made, body)} <= EXTENSIONS.keys()


@pytest.mark.parametrize("case", sorted(CUSTOM_CALLS))
def test_custom_calls_are_not_of_the_specification(case: str) -> None:
    refused = set()
    for name, data in frames(RESPONSES[case]):
        try:
            through(data)
        except (KeyError, ValidationError):
            refused.add(name)
    assert refused == {
        "response.output_item.added",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.output_item.done",
        frames(RESPONSES[case])[-1][0],
    }


@pytest.mark.parametrize("case", sorted(RESPONSES))
def test_the_profiles_differ_in_two_names_alone(case: str) -> None:
    golden = RESPONSES[case]
    for (_, ours), theirs in zip(frames(golden), golden.data, strict=True):
        renamed = {**theirs, "type": theirs["type"].replace(".reasoning_text.", ".reasoning.")}
        assert ours == renamed
        assert (ours == theirs) == (".reasoning_text." not in theirs["type"])


# --- what the models leave open -------------------------------------------------------------------


def check_left_open(data: dict[str, Any]) -> None:
    """The rest that the specification's text, or its schema without these models, asks for."""
    if "response" in data:
        check_resource(data["type"], data["response"])
    if "item" in data:
        check_item(data["item"], done=data["type"] == "response.output_item.done")
    if "part" in data:
        check_part(data["part"])
    if data["type"] in ("response.output_text.delta", "response.output_text.done"):
        assert isinstance(data["logprobs"], list)
    if data["type"].endswith(".delta"):
        assert data["delta"] != ""
    if data["type"] == "error":
        assert data["error"]["type"] == "server_error"


ENDS = {"response.completed", "response.incomplete", "response.failed"}


def check_resource(kind: str, response: dict[str, Any]) -> None:
    status = kind.removeprefix("response.").replace("created", response["status"])
    assert response["status"] == status
    assert status in ("queued", "in_progress", "completed", "incomplete", "failed")
    assert (response["error"] is not None) == (status == "failed")
    assert (response["incomplete_details"] is not None) == (status == "incomplete")
    if status == "incomplete":
        reason = response["incomplete_details"]["reason"]
        assert reason in ("max_output_tokens", "content_filter")
    assert (response["completed_at"] is not None) == (status == "completed")
    usage = response["usage"]
    assert (usage is not None) == (kind in ENDS)
    if usage is not None:
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert response["metadata"] == {}
    assert response["service_tier"] in ("auto", "default", "flex", "priority")
    for item in response["output"]:
        check_item(item, done=True)


def check_item(item: dict[str, Any], *, done: bool) -> None:
    """``status`` is optional in the models for a reasoning item, and parts may be of any kind."""
    assert item["status"] in (("completed", "incomplete") if done else ("in_progress",))
    kinds = {"message": {"output_text", "refusal"}, "reasoning": {"reasoning_text"}}
    if item["type"] == "function_call":
        assert 1 <= len(item["call_id"]) <= 64
        return
    assert {part["type"] for part in item["content"]} <= kinds[item["type"]]
    assert bool(item["content"]) == done
    for part in item["content"]:
        check_part(part)
    if item["type"] == "message":
        assert item["role"] == "assistant"
    else:
        assert item["summary"] == []


def check_part(part: dict[str, Any]) -> None:
    if part["type"] == "output_text":
        assert part["annotations"] == []
        assert isinstance(part["logprobs"], list)
