"""The stream checker against real recordings of the OpenAI API.

``pytest tests/conformance/recorded_streams.py``: it fetches the recordings, so it runs where it is
named and is not collected otherwise.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from conformance.cassettes import streams
from responsory.check import Report, check_stream


@pytest.fixture(scope="session")
def recordings() -> Mapping[str, bytes]:
    return streams()


@pytest.fixture(scope="session")
def reports(recordings: Mapping[str, bytes]) -> Mapping[str, Report]:
    return {name: check_stream(data, profile="foreign") for name, data in recordings.items()}


def events(data: bytes) -> list[bytes]:
    """The frames, blank lines included."""
    return re.findall(rb".+?\n\n", data, re.DOTALL)


def data_of(frame: bytes) -> Any:
    return json.loads(frame.split(b"data: ", 1)[1])


def test_every_recording_is_accepted(reports: Mapping[str, Report]) -> None:
    refused = {name: str(report) for name, report in reports.items() if not report.accepted}
    assert refused == {}
    kinds = Counter((report.api, report.outcome) for report in reports.values())
    assert kinds == {
        ("responses", "completed"): 127,
        ("responses", "incomplete"): 1,
        ("chat", "stop"): 3,
    }


def test_they_hold_what_this_library_does_not_know(reports: Mapping[str, Report]) -> None:
    """So the opaque ways are walked: hosted tools, summaries, annotations, encrypted content."""
    items = Counter(
        item["type"]
        for report in reports.values()
        if report.result is not None
        for item in report.result.get("output", ())
    )
    assert items["message"] == 98
    assert set(items) >= {"reasoning", "function_call", "custom_tool_call", "web_search_call"}
    assert set(items) >= {"code_interpreter_call", "image_generation_call", "mcp_list_tools"}
    for report in reports.values():
        assert report.result is not None


def test_each_folds_to_the_final_object_it_carries(
    recordings: Mapping[str, bytes], reports: Mapping[str, Report]
) -> None:
    compared = 0
    for name, report in reports.items():
        assert report.result is not None
        if report.api == "responses":
            assert report.result == data_of(events(recordings[name])[-1])["response"], name
            compared += 1
    assert compared == 128


def test_chat_folds_as_the_sdk_folds(
    recordings: Mapping[str, bytes], reports: Mapping[str, Report]
) -> None:
    chats = {name: report for name, report in reports.items() if report.api == "chat"}
    for name, report in chats.items():
        state: Any = ChatCompletionStreamState()
        for frame in events(recordings[name]):
            if not frame.startswith(b"data: [DONE]"):
                state.handle_chunk(ChatCompletionChunk.model_validate(data_of(frame)))
        sdk = state.get_final_completion().model_dump()
        assert report.result is not None
        (mine,), (theirs,) = report.result["choices"], sdk["choices"]
        assert mine["finish_reason"] == theirs["finish_reason"]
        assert mine["message"]["content"] == theirs["message"]["content"]
        for call, due in zip(
            mine["message"].get("tool_calls", []),
            theirs["message"]["tool_calls"] or [],
            strict=True,
        ):
            assert call["id"] == due["id"]
            assert call["function"]["name"] == due["function"]["name"]
            assert call["function"]["arguments"] == due["function"]["arguments"]
        assert (
            state.get_final_completion().usage.model_dump(exclude_none=True)
            == (report.result["usage"])
        )
        assert report.result["id"] == sdk["id"]


def test_no_cut_changes_a_report(
    recordings: Mapping[str, bytes], reports: Mapping[str, Report]
) -> None:
    for name, data in recordings.items():
        chance = random.Random(name)
        cuts = sorted(chance.choices(range(len(data) + 1), k=200))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert check_stream(pieces, profile="foreign") == reports[name], name
        crlf = check_stream(data.replace(b"\n", b"\r\n"), profile="foreign")
        assert crlf == reports[name], name


def test_none_is_accepted_with_an_event_less(recordings: Mapping[str, bytes]) -> None:
    """Any event but ``[DONE]``, for the shorter recordings; a chat's deltas are not numbered."""
    for name, data in recordings.items():
        frames = events(data)
        if len(frames) > 60 or frames[-1].startswith(b"data: [DONE]"):
            continue
        for index in range(len(frames)):
            less = b"".join([*frames[:index], *frames[index + 1 :]])
            assert not check_stream(less, profile="foreign").accepted, (name, index)
            assert not check_stream(b"".join(frames[:index]), profile="foreign").accepted


def test_none_is_accepted_with_a_byte_less_at_the_end(recordings: Mapping[str, bytes]) -> None:
    for name, data in recordings.items():
        for length in (1, 2, 3, 10):
            violation = check_stream(data[:-length], profile="foreign").violation
            assert violation is not None, name
            assert violation.rule == "frame-whole"
