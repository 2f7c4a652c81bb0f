"""Every golden frame and body is of the type that openai-python declares, and nothing is lost.

The SDK itself builds its objects without checking them; here they are checked. What a type says
that the API itself does not keep to is listed, and so is every key that no type knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter, ValidationError

from conformance.sdk.goldens import CHAT, GOLDENS, RESPONSES, Golden

FRAMES: dict[str, TypeAdapter[Any]] = {
    "responses": TypeAdapter(ResponseStreamEvent),
    "chat": TypeAdapter(ChatCompletionChunk),
    "completions": TypeAdapter(Completion),
}
BODIES: dict[str, TypeAdapter[Any]] = {
    "responses": TypeAdapter(Response),
    "chat": TypeAdapter(ChatCompletion),
    "completions": TypeAdapter(Completion),
}
UNKNOWN = {
    # Of the Open Responses resource, and not of OpenAI's.
    "Response.presence_penalty",
    "Response.frequency_penalty",
    "Response.store",
    # Sent by the API, and missing in the SDK's types.
    "ResponseErrorEvent.error",
    "ResponseFunctionCallArgumentsDoneEvent.name",
    "ResponseCustomToolCall.status",
    "Logprob.bytes",
    "LogprobTopLogprob.bytes",
    "ChoiceDeltaToolCall.custom",
    # Names that other servers for open models have made common.
    "ChoiceDelta.reasoning_content",
    "ChatCompletionMessage.reasoning_content",
    "Choice.stop_reason",
    "CompletionChoice.stop_reason",
}
"""``type.key`` of every key that the SDK has no type for. It keeps them all the same."""
CUSTOM_CALLS = {"built/custom-call", "built/length-in-custom-input"}

EVERY = [golden for goldens in GOLDENS.values() for golden in goldens.values()]
every_golden = pytest.mark.parametrize(
    "golden", EVERY, ids=[f"{each.endpoint}-{each.case}" for each in EVERY]
)


def typed(adapter: TypeAdapter[Any], value: dict[str, Any]) -> set[str]:
    """Check that ``value`` is of the type and comes back whole; the keys that the type lacks."""
    model = adapter.validate_python(value)
    assert adapter.dump_python(model, mode="json", exclude_unset=True, by_alias=True) == value
    return set(unknown(model))


def unknown(value: Any) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{type(value).__name__}.{key}" for key in value.model_extra or {})
        for key in value.model_fields_set:
            yield from unknown(getattr(value, key, None))
    elif isinstance(value, list):
        for item in value:
            yield from unknown(item)


def finished(value: dict[str, Any]) -> dict[str, Any]:
    """With a finish reason where there is none yet: the types for it are those of a whole
    completion, and a chunk of one has null, in the API too."""
    choices = [
        {**choice, "finish_reason": choice["finish_reason"] or "stop"}
        for choice in value["choices"]
    ]
    return {**value, "choices": choices}


def frames(golden: Golden) -> Iterator[dict[str, Any]]:
    """Those that have a type: all but the error chunk of chat and completions, and the opener of a
    custom call in chat."""
    for data in golden.data:
        if golden.endpoint == "responses":
            yield data
        elif "error" in data:
            assert data is golden.data[-1] or data == golden.data[-1]
        elif golden.endpoint == "completions":
            yield finished(data)
        elif not opens_custom_call(data):
            yield data


def opens_custom_call(chunk: dict[str, Any]) -> bool:
    return any(
        call.get("type") == "custom"
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    )


@pytest.mark.wire("K7")
@every_golden
def test_frames(golden: Golden) -> None:
    for data in frames(golden):
        assert typed(FRAMES[golden.endpoint], data) <= UNKNOWN


@every_golden
def test_bodies(golden: Golden) -> None:
    if golden.body is None:
        return
    body = golden.body
    if golden.endpoint != "responses" and None in golden.finish_reasons:
        assert RESPONSES[golden.case].body["status"] == "cancelled"  # type: ignore[index]  # it is
        body = finished(body)
    assert typed(BODIES[golden.endpoint], body) <= UNKNOWN


@pytest.mark.parametrize("case", sorted(CUSTOM_CALLS))
def test_a_custom_call_in_a_chat_stream_has_no_type(case: str) -> None:
    (opener,) = [data for data in CHAT[case].data if opens_custom_call(data)]
    with pytest.raises(ValidationError, match="Input should be 'function'"):
        FRAMES["chat"].validate_python(opener)
