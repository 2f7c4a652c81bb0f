"""The Responses stream, byte for byte against checked-in streams, and its small print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from responsory import events as ev
from responsory.projections import ResponsesStream, response_body
from responsory.testing import a_response
from responsory.testing.folds import parse
from responsory.values import JSON, Logprob, TopLogprob, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.testing.streams import Builder

FRAMES = Path(__file__).parent / "frames"

ECHO: Mapping[str, JSON] = {
    "model": "tiny",
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "reasoning": None,
    "truncation": "disabled",
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
}
PARAMETERS: JSON = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
WEATHER: JSON = {
    "type": "function",
    "name": "get_weather",
    "description": None,
    "parameters": PARAMETERS,
    "strict": None,
}


def begun(*, background: bool = False, **echo: JSON) -> Builder:
    return a_response(background=background, echo={**ECHO, **echo})


OSLO = ('{"city"', ':"Oslo"}')
STREAMS: Mapping[str, Builder] = {
    "text": begun().text("Hi", " there").finish(),
    "reasoning": begun(reasoning={"effort": "low", "summary": None})
    .reasoning("2+2", " is 4.")
    .text("4")
    .finish(usage=Usage(14, 9, reasoning_tokens=6)),
    "call": begun(tools=[WEATHER]).call("get_weather", *OSLO).finish(usage=Usage(58, 17)),
    "two_calls": begun(tools=[WEATHER])
    .call("get_weather", "".join(OSLO))
    .call("get_weather", '{"city":', '"Rome"}')
    .finish(usage=Usage(58, 34)),
    "length": begun(max_output_tokens=2).text("Hi", " the").finish("length", usage=Usage(11, 2)),
    "failed": begun().text("Hi").fail(),
    "cancelled": a_response(background=True, echo={**ECHO, "background": True})
    .start()
    .text("Hi")
    .cancel(),
}


@pytest.mark.wire("F1", "F3", "G1", "K19")
@pytest.mark.parametrize("name", STREAMS)
def test_byte_for_byte(name: str) -> None:
    stream = ResponsesStream()
    frames: list[bytes] = []
    for group in STREAMS[name].groups:
        assert not stream.ended
        frames += stream.feed(0, group)
    assert b"".join(frames) == (FRAMES / f"{name}.sse").read_bytes()
    assert stream.ended
    assert stream.feed(0, STREAMS[name].groups[0]) == []


@pytest.mark.parametrize("name", STREAMS)
def test_every_frame_is_whole(name: str) -> None:
    for frame in ResponsesStream().feed(0, STREAMS[name].log[:]):
        assert frame.endswith(b"\n\n")
        assert frame.count(b"\n\n") == 1


@pytest.mark.wire("P6")
@pytest.mark.parametrize("name", STREAMS)
def test_the_body_has_33_keys_in_order(name: str) -> None:
    body = response_body(STREAMS[name].log)
    head = ["id", "object", "created_at", "completed_at", "status", "error"]
    head += ["incomplete_details", "output", "usage"]
    assert list(body) == head + list(ECHO)
    assert len(body) == 33
    assert response_body(STREAMS[name].log[:]) == body


def test_a_cancelled_response_keeps_its_item_and_usage() -> None:
    body = response_body(STREAMS["cancelled"].log)
    assert body["status"] == "cancelled"
    assert body["output"][0]["status"] == "incomplete"
    assert body["output"][0]["content"][0]["text"] == "Hi"
    assert body["usage"]["total_tokens"] == 12
    assert body["completed_at"] is None


def data_of(builder: Builder, kind: str, *, profile: str = "openai") -> list[str]:
    """The data lines of the frames of one event type."""
    stream = ResponsesStream(profile=profile)  # type: ignore[arg-type]  # one of the two
    frames = [frame.decode() for frame in stream.feed(0, builder.log[:])]
    start = f"event: {kind}\ndata: "
    return [frame.removeprefix(start)[:-2] for frame in frames if frame.startswith(start)]


def test_logprobs_are_on_delta_done_part_and_item() -> None:
    entry = Logprob("é", -0.25, b"\xc3\xa9", (TopLogprob("e", float("-inf"), b"e"),))
    shown = (
        '[{"token":"é","logprob":-0.25,"bytes":[195,169],'
        '"top_logprobs":[{"token":"e","logprob":-9999.0,"bytes":[101]}]}]'
    )
    made = begun().tokens(entry).finish()
    place = '"item_id":"msg_r1_0","output_index":0,"content_index":0'
    assert data_of(made, "response.output_text.delta") == [
        '{"type":"response.output_text.delta","sequence_number":4,'
        f'{place},"delta":"é","logprobs":{shown}}}'
    ]
    for kind in ("output_text.done", "content_part.done", "output_item.done", "completed"):
        (data,) = data_of(made, f"response.{kind}")
        assert f'"logprobs":{shown}' in data


def test_refusal_frames() -> None:
    made = begun().text("No").refusal("I can", "not").finish()
    place = '"item_id":"msg_r1_0","output_index":0,"content_index":1'
    assert data_of(made, "response.refusal.delta") == [
        f'{{"type":"response.refusal.delta","sequence_number":8,{place},"delta":"I can"}}',
        f'{{"type":"response.refusal.delta","sequence_number":9,{place},"delta":"not"}}',
    ]
    assert data_of(made, "response.refusal.done") == [
        f'{{"type":"response.refusal.done","sequence_number":10,{place},"refusal":"I cannot"}}'
    ]
    assert data_of(made, "response.content_part.done")[1].endswith(
        '"part":{"type":"refusal","refusal":"I cannot"}}'
    )


def test_custom_tool_call_frames() -> None:
    made = begun().call("shell", "ls", " -l", kind="custom").finish()
    place = '"item_id":"ctc_r1_0","output_index":0'
    assert data_of(made, "response.custom_tool_call_input.delta")[0] == (
        '{"type":"response.custom_tool_call_input.delta","sequence_number":3,'
        f'{place},"delta":"ls"}}'
    )
    assert data_of(made, "response.custom_tool_call_input.done") == [
        '{"type":"response.custom_tool_call_input.done","sequence_number":5,'
        f'{place},"input":"ls -l"}}'
    ]
    assert data_of(made, "response.output_item.done") == [
        '{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":'
        '{"type":"custom_tool_call","id":"ctc_r1_0","call_id":"call_r1_0","name":"shell",'
        '"input":"ls -l","status":"completed"}}'
    ]


def test_a_family_can_bring_its_own_call_id() -> None:
    made = begun().call("f", call_id="functions.f:0").finish()
    for kind in ("output_item.added", "output_item.done", "completed"):
        (data,) = data_of(made, f"response.{kind}")
        assert '"call_id":"functions.f:0"' in data
    assert '"arguments":""' in data_of(made, "response.function_call_arguments.done")[0]


def test_phase_is_the_last_key_of_its_message() -> None:
    made = begun().text("Let me see.", phase="commentary").text("4", phase="final_answer").finish()
    first, second = (item for item in response_body(made.log)["output"])
    assert list(first) == ["type", "id", "status", "role", "content", "phase"]
    assert (first["phase"], second["phase"]) == ("commentary", "final_answer")
    assert data_of(made, "response.output_item.added")[0].endswith(
        '"content":[],"phase":"commentary"}}'
    )


def test_an_answer_of_no_tokens_is_one_empty_message() -> None:
    for reason, status in (("stop", "completed"), ("length", "incomplete")):
        made = begun().finish(reason)  # type: ignore[arg-type]  # one of the reasons
        (item,) = response_body(made.log)["output"]
        assert item["status"] == status
        assert item["content"] == [
            {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        ]
    assert response_body(begun().cancel().log)["output"] == []
    assert response_body(begun().fail().log)["output"] == []


def test_queued_responses_that_never_ran() -> None:
    failed = a_response(background=True, echo=ECHO).fail()
    kinds = [name for name, _ in parse(ResponsesStream().feed(0, failed.log[:]))]
    assert kinds == [
        "response.created", "response.queued", "error", "response.failed", None,
    ]  # fmt: skip
    cancelled = a_response(background=True, echo=ECHO).cancel()
    kinds = [name for name, _ in parse(ResponsesStream().feed(0, cancelled.log[:]))]
    assert kinds == ["response.created", "response.queued", None]


def test_the_open_responses_profile_renames_two_events_and_nothing_else() -> None:
    log = STREAMS["reasoning"].log
    ours = b"".join(ResponsesStream().feed(0, log[:]))
    theirs = b"".join(ResponsesStream(profile="openresponses").feed(0, log[:]))
    assert theirs == ours.replace(b"response.reasoning_text.d", b"response.reasoning.d")
    assert theirs != ours
    with pytest.raises(ValueError, match="no wire profile `azure`"):
        ResponsesStream(profile="azure")  # type: ignore[arg-type]  # the point of the test


@pytest.mark.wire("F4")
def test_only_what_json_demands_is_escaped() -> None:
    text = 'quote " slash / back \\ tab \t nul \x00 line \u2028 del \x7f é 😀'
    made = begun().text(text).finish()
    (data,) = data_of(made, "response.output_text.delta")
    assert json.loads(data)["delta"] == text
    assert r"quote \" slash / back \\ tab \t nul \u0000 line" in data
    assert "\u2028 del \x7f é 😀" in data


def test_content_filter_is_incomplete() -> None:
    body = response_body(begun().text("a").finish("content_filter").log)
    assert body["incomplete_details"] == {"reason": "content_filter"}
    assert body["completed_at"] is None


def test_an_echo_can_be_empty() -> None:
    made = a_response(echo={}).finish()
    for _, data in parse(ResponsesStream().feed(0, made.log[:])):
        assert data == "[DONE]" or isinstance(data, dict)


def test_a_response_has_one_answer() -> None:
    with pytest.raises(ValueError, match="no choice 1"):
        ResponsesStream().feed(1, [])


def test_the_running_body_shows_the_open_item() -> None:
    made = begun().reasoning("so").text("a", "b")
    made.log.extend([ev.TextDelta(len(made.log), 1, 0, "c", (Logprob("c", -1.0, b"c"),))])
    reasoning, message = response_body(made.log)["output"]
    assert reasoning["status"] == "completed"
    assert message["status"] == "in_progress"
    assert message["content"][0]["text"] == "abc"
    assert [entry["token"] for entry in message["content"][0]["logprobs"]] == ["c"]
    open_call = begun().call("f", '{"a"', closed=False)
    assert response_body(open_call.log)["output"][0]["arguments"] == '{"a"'
