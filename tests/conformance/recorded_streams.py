"""The stream checker against real recordings of the OpenAI API.

``pytest tests/conformance/recorded_streams.py``: it fetches the recordings, so it runs where it is
named and is not collected otherwise.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


TEXTS = {
    "response.output_text.delta": ("content", "content_index", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "text"),
}
"""Where a delta of a part goes: the item's list, the key of the place in it, the part's key."""
INPUTS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
FOLDED = {*TEXTS, *INPUTS, "response.output_text.annotation.added"}
STREAMED = {
    "message": ("content",),
    "reasoning": ("content", "summary"),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
}
"""What of an item its deltas tell."""
MORE = " indeed"


def folded(frames: Iterable[bytes]) -> list[Any]:
    """The items that the frames add up to. Texts, inputs and annotations are of the deltas alone;
    the ``done`` of an item gives what no delta tells: its status, and all of a hosted tool's."""
    items: list[Any] = []
    for data in map(data_of, frames):
        kind = data["type"]
        if kind == "response.output_item.added":
            items.append(data["item"])
        item = items[data["output_index"]] if "output_index" in data else {}
        if kind == "response.content_part.added":
            item["content"].append(data["part"])
        elif kind == "response.reasoning_summary_part.added":
            item["summary"].append(data["part"])
        elif kind in TEXTS:
            parts, index, key = TEXTS[kind]
            item[parts][data[index]][key] += data["delta"]
        elif kind in INPUTS:
            item[INPUTS[kind]] += data["delta"]
        elif kind == "response.output_text.annotation.added":
            item["content"][data["content_index"]]["annotations"].append(data["annotation"])
        elif kind == "response.output_item.done":
            told = STREAMED.get(item["type"], ())
            streamed = {key: item[key] for key in told if key in item}
            items[data["output_index"]] = {**data["item"], **streamed}
    return items


def without_ciphertext(output: list[Any]) -> list[Any]:
    """A server may encrypt anew for each event."""
    return [{key: value for key, value in item.items() if key != "encrypted_content"}
            for item in output]  # fmt: skip


def short_responses(recordings: Mapping[str, bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """The frames of each Responses recording that is quick to change in every place."""
    for name, data in recordings.items():
        frames = events(data)
        if len(frames) <= 60 and not frames[-1].startswith(b"data: [DONE]"):
            yield name, frames


def with_another_text(frames: list[bytes]) -> tuple[str, list[bytes]]:
    """The first text of a message, and the frames with more in its last delta and in every event
    that tells it whole. Without such a text, an empty one."""
    all_data = list(map(data_of, frames))
    kinds = [data["type"] for data in all_data]
    if "response.output_text.done" not in kinds:
        return "", frames
    done = kinds.index("response.output_text.done")
    text = all_data[done]["text"]
    delta = max(at for at in range(done) if kinds[at] == "response.output_text.delta")
    all_data[delta]["delta"] += MORE
    for data in all_data:
        _retell(data, text)
    return text, [
        f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode() for data in all_data
    ]


def _retell(value: Any, text: str) -> None:
    if isinstance(value, dict) and value.get("text") == text:
        value["text"] = text + MORE
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, (dict, list)):
            _retell(child, text)


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
    """Three that know nothing of each other: the fold of this file, which does not see the terminal
    event; the checker's; and the object that the API put into its terminal event."""
    compared = 0
    for name, report in reports.items():
        if report.api == "responses":
            *before, last = events(recordings[name])
            final = data_of(last)["response"]
            assert report.result == final, name
            assert without_ciphertext(folded(before)) == without_ciphertext(final["output"]), name
            compared += 1
    assert compared == 128


def test_the_fold_is_made_of_every_delta(recordings: Mapping[str, bytes]) -> None:
    """So the comparison above can fail: without any one delta the fold is another object."""
    lost = 0
    for name, (*before, last) in short_responses(recordings):
        due = without_ciphertext(data_of(last)["response"]["output"])
        for index, frame in enumerate(before):
            if data_of(frame)["type"] in FOLDED:
                less = [*before[:index], *before[index + 1 :]]
                assert without_ciphertext(folded(less)) != due, (name, index)
                lost += 1
    assert lost > 500


def test_a_text_that_only_the_terminal_event_tells_otherwise_is_noticed(
    recordings: Mapping[str, bytes],
) -> None:
    """By the checker and by the fold. Where the terminal event tells the new text too, both follow
    it: neither gives the old one back."""
    changed = 0
    for name, frames in short_responses(recordings):
        text, retold = with_another_text(frames)
        if not text:
            continue
        *before, last = retold
        final = without_ciphertext(data_of(frames[-1])["response"]["output"])
        report = check_stream(b"".join([*before, frames[-1]]), profile="foreign")
        assert report.violation is not None, name
        assert report.violation.rule == "final-equals-streamed", (name, str(report))
        assert without_ciphertext(folded(before)) != final, name
        report = check_stream(b"".join([*before, last]), profile="foreign")
        assert report.result is not None, (name, str(report))
        assert without_ciphertext(folded(before)) == without_ciphertext(report.result["output"])
        assert json.dumps(f"{text}{MORE}") in json.dumps(report.result["output"]), name
        changed += 1
    assert changed > 50


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
