"""openai-python's own stream helpers over every golden stream.

The bytes come over a socket, split at odd places, so the SDK's HTTP client and SSE reader are part
of the test. What the helpers accumulate must be the unary body. Which endings they raise on is
theirs to choose; it is written down here, with what can be read all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import openai
import pytest

from conformance.sdk.differences import differences
from conformance.sdk.goldens import CHAT, COMPLETIONS, GOLDENS, RESPONSES, Golden
from conformance.sdk.playback import api_of, serving_goldens

PARSED = {"parsed", "parsed_arguments"}
"""The helpers' own: what a schema of the caller's would make of the text."""
CUSTOM_CALL = "built/custom-call"
"""openai-python has no type for a custom call in a chat stream."""
MESSAGES: list[Any] = [{"role": "user", "content": "Hi"}]

Connect = Callable[[Golden], openai.OpenAI]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving_goldens() as address:
        yield address


@pytest.fixture(scope="module")
def connect(address: str) -> Iterator[Connect]:
    """A client to which every answer is the case's stream."""
    with openai.OpenAI(api_key="none", max_retries=0) as client:
        yield lambda golden: client.with_options(base_url=api_of(address, golden))


def async_client_of(address: str, golden: Golden) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=api_of(address, golden), max_retries=0)


def check_response(made: Any, golden: Golden) -> None:
    assert list(differences(made.to_dict(), golden.body, added=PARSED)) == []


def check_failure(raised: openai.APIError, golden: Golden) -> None:
    last = golden.data[-1]
    error = last["response"]["error"] if golden.endpoint == "responses" else last["error"]
    assert (raised.code, raised.message) == (error["code"], error["message"])


def cases(goldens: Mapping[str, Golden], *, failed: bool = False) -> pytest.MarkDecorator:
    """Parametrizes ``golden`` over the cases that failed, or those that did not."""
    chosen = {case: golden for case, golden in goldens.items() if golden.failed is failed}
    return pytest.mark.parametrize("golden", chosen.values(), ids=chosen)


# --- Responses ------------------------------------------------------------------------------------


@pytest.mark.wire("K6")
@cases(RESPONSES)
def test_responses(connect: Connect, golden: Golden) -> None:
    with connect(golden).responses.stream(model="tiny", input="Hi") as stream:
        events = list(stream)
        assert [event.type for event in events] == [data["type"] for data in golden.data]
        check_items(events, golden)
        assert golden.body is not None
        if golden.body["status"] == "completed":
            check_response(stream.get_final_response(), golden)
            return
        with pytest.raises(RuntimeError, match=r"Didn't receive a `response\.completed` event"):
            stream.get_final_response()
    last: Any = events[-1]
    if golden.body["status"] == "incomplete":
        check_response(last.response, golden)
    else:  # the items are all that a cancelled stream shows
        assert golden.body["status"] == "cancelled"


def check_items(events: list[Any], golden: Golden) -> None:
    """Items that are done are those of the body. Deltas add up to what is done, and come with the
    text so far where the helper has one."""
    assert golden.body is not None
    done = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
    assert list(differences(done, golden.body["output"], added=PARSED)) == []
    text = ""
    for event in events:
        if event.type in ("response.content_part.added", "response.output_item.added"):
            text = ""
        elif event.type.endswith(".delta"):
            text += event.delta
            assert getattr(event, "snapshot", text) == text
        for field in ("text", "refusal", "arguments", "input"):
            assert getattr(event, field, text) == text


@pytest.mark.wire("K8", "K18")
@cases(RESPONSES, failed=True)
def test_a_failed_response_raises_after_what_was_said(connect: Connect, golden: Golden) -> None:
    seen: list[str] = []
    with (
        connect(golden).responses.stream(model="tiny", input="Hi") as stream,
        pytest.raises(openai.APIError) as raised,
    ):
        seen.extend(event.type for event in stream)
    assert [*seen, "error", "response.failed"] == [data["type"] for data in golden.data]
    check_failure(raised.value, golden)


@cases(RESPONSES)
async def test_responses_async(address: str, golden: Golden) -> None:
    async with (
        async_client_of(address, golden) as client,
        client.responses.stream(model="tiny", input="Hi") as stream,
    ):
        kinds = [event.type async for event in stream]
        assert kinds == [data["type"] for data in golden.data]
        assert golden.body is not None
        if golden.body["status"] == "completed":
            check_response(await stream.get_final_response(), golden)


@pytest.mark.wire("K15")
@pytest.mark.parametrize("case", ["built/text", "built/reasoning-text-call", "built/phases"])
def test_a_resumed_reader_gets_the_same_response(connect: Connect, case: str) -> None:
    """The helper asks for the stream from its start, and hides what its caller has seen."""
    golden = RESPONSES[case]
    with connect(golden).responses.stream(response_id="resp_r1", starting_after=5) as stream:
        numbers = [event.sequence_number for event in stream]
        check_response(stream.get_final_response(), golden)
    assert numbers == list(range(6, len(golden.data)))


# --- chat -----------------------------------------------------------------------------------------

CHAT_ADDED = PARSED | {"index"}
CHAT_LOST = {"stop_reason"}
"""The helper keeps no field of a finish chunk that it has no type for."""


def check_chat(made: openai.BaseModel, golden: Golden) -> None:
    found = made.to_dict()
    assert list(differences(found, golden.body, added=CHAT_ADDED, lost=CHAT_LOST)) == []


@pytest.mark.wire("K9", "K11", "K12")
@cases({case: golden for case, golden in CHAT.items() if case != CUSTOM_CALL})
def test_chat(connect: Connect, golden: Golden) -> None:
    reasons = golden.finish_reasons
    with connect(golden).chat.completions.stream(model="tiny", messages=MESSAGES) as stream:
        if "length" in reasons:
            with pytest.raises(openai.LengthFinishReasonError) as cut:
                stream.get_final_completion()
            check_chat(cut.value.completion, golden)
        elif "content_filter" in reasons:
            with pytest.raises(openai.ContentFilterFinishReasonError):
                stream.get_final_completion()
        else:
            check_chat(stream.get_final_completion(), golden)


@cases(CHAT, failed=True)
def test_a_failed_chat_raises(connect: Connect, golden: Golden) -> None:
    with (
        connect(golden).chat.completions.stream(model="tiny", messages=MESSAGES) as stream,
        pytest.raises(openai.APIError) as raised,
    ):
        stream.until_done()
    check_failure(raised.value, golden)


def test_custom_calls_are_more_than_the_chat_helper_knows(connect: Connect) -> None:
    golden = CHAT[CUSTOM_CALL]
    with (
        connect(golden).chat.completions.stream(model="tiny", messages=MESSAGES) as stream,
        pytest.raises(AttributeError),
    ):
        stream.get_final_completion()


@pytest.mark.parametrize("case", ["built/text-around-calls", "built/logprobs", "think/two-blocks"])
async def test_chat_async(address: str, case: str) -> None:
    golden = CHAT[case]
    async with (
        async_client_of(address, golden) as client,
        client.chat.completions.stream(model="tiny", messages=MESSAGES) as stream,
    ):
        check_chat(await stream.get_final_completion(), golden)


# --- completions, and raw events everywhere -------------------------------------------------------


@cases(COMPLETIONS)
def test_completions(connect: Connect, golden: Golden) -> None:
    """The SDK has no helper here, so the chunks are added up by hand."""
    client = connect(golden)
    made: dict[int, dict[str, Any]] = {}
    usage: Any = None
    for chunk in client.completions.create(model="tiny", prompt="Hi", stream=True):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            so_far = made.setdefault(choice.index, {"text": "", "finish_reason": None})
            so_far["text"] += choice.text
            so_far["finish_reason"] = choice.finish_reason
    assert golden.body is not None
    assert usage.to_dict() == golden.body["usage"]
    for choice in golden.body["choices"]:
        due = {"text": choice["text"], "finish_reason": choice["finish_reason"]}
        assert made.get(choice["index"], {"text": "", "finish_reason": None}) == due


EVERY = [golden for goldens in GOLDENS.values() for golden in goldens.values()]


@pytest.mark.wire("K16")
@pytest.mark.parametrize("golden", EVERY, ids=[f"{each.endpoint}-{each.case}" for each in EVERY])
def test_raw_events_carry_every_key(connect: Connect, golden: Golden) -> None:
    """Without a helper: each frame becomes a typed object that gives the frame's JSON back."""
    client = connect(golden)
    stream: Any
    if golden.endpoint == "responses":
        stream = client.responses.create(model="tiny", input="Hi", stream=True)
    elif golden.endpoint == "chat":
        stream = client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
    else:
        stream = client.completions.create(model="tiny", prompt="Hi", stream=True)
    due = golden.data
    if golden.failed:  # the SDK raises at the error, and shows nothing after it
        due = due[: next(at for at, data in enumerate(due) if data.get("error"))]
    seen: list[dict[str, Any]] = []
    try:
        seen += (event.to_dict() for event in stream)
    except openai.APIError as raised:
        check_failure(raised, golden)
        assert golden.failed
    else:
        assert not golden.failed
    assert seen == due


@cases(RESPONSES, failed=True)
def test_the_terminal_frame_of_a_failure_can_be_read_from_the_bytes(
    connect: Connect, golden: Golden
) -> None:
    client = connect(golden)
    create = client.responses.with_streaming_response.create
    with create(model="tiny", input="Hi", stream=True) as response:
        lines = list(response.iter_lines())
    assert lines[-2:] == ["data: [DONE]", ""]
    assert "event: response.failed" in lines
    assert golden.data[-1]["response"] == golden.body
