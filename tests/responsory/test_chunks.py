"""The chat and completions streams, byte for byte, and the merger of several choices."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from responsory import events as ev
from responsory.commands import Text
from responsory.errors import LogError
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
)
from responsory.testing import a_response, fold_chat, fold_completions
from responsory.testing.folds import parse
from responsory.values import Logprob, TopLogprob, Usage

if TYPE_CHECKING:
    from responsory.testing.streams import Builder

PAGE = (Path(__file__).parent / "frames" / "chunks.md").read_text(encoding="utf-8")
CHUNKS = dict(re.findall(r"^\| (C\d+) \| [^|]* \| `(.*)` \|$", PAGE, re.MULTILINE))


def named(*names: str) -> list[bytes]:
    """The frames of the page's chunks, and [DONE]."""
    return [f"data: {CHUNKS.get(name, name)}\n\n".encode() for name in names]


def frames(
    stream: ChatStream | CompletionsStream | ResponsesStream, *builders: Builder
) -> list[bytes]:
    """The frames when the choices are fed one group at a time, in turn."""
    out: list[bytes] = []
    for turn in range(max(len(builder.groups) for builder in builders)):
        for choice, builder in enumerate(builders):
            if turn < len(builder.groups):
                out += stream.feed(choice, builder.groups[turn])
    return out


THERE = Logprob(" there", -0.25, b" there", (TopLogprob(" there", -0.25, b" there"),))


def test_the_page_has_every_chunk() -> None:
    assert set(CHUNKS) == {f"C{number}" for number in range(1, 19)}


def test_chat_reasoning_and_content() -> None:
    made = a_response().reasoning("2+2").text("4").finish()
    assert frames(ChatStream(), made) == named("C1", "C2", "C3", "C6", "[DONE]")


def test_chat_call() -> None:
    made = a_response().call("get_weather", '{"city":').finish()
    assert frames(ChatStream(), made) == named("C1", "C4", "C5", "C7", "[DONE]")


def test_chat_usage() -> None:
    usage = Usage(11, 3, reasoning_tokens=2)
    made = a_response().text("4").finish(usage=usage)
    out = frames(ChatStream(include_usage=True), made)
    assert out[1] == named("C11")[0]
    assert out[-2:] == named("C8", "[DONE]")
    for frame in out[:-2]:
        assert frame.endswith(b',"usage":null}\n\n')


def test_chat_failure() -> None:
    made = a_response().text("4").fail()
    stream = ChatStream(include_usage=True)
    assert frames(stream, made)[2:] == named("C9", "[DONE]")
    assert stream.ended


@pytest.mark.wire("C10")
def test_chat_stop_string() -> None:
    made = a_response().text("4").finish(stop="END")
    assert frames(ChatStream(), made)[2] == named("C10")[0]


@pytest.mark.wire("C12", "S11")
def test_chat_logprobs() -> None:
    made = a_response().tokens(THERE).reasoning("a").call("f", "{}").refusal("b").finish()
    out = frames(ChatStream(logprobs=True), made)
    assert out[1] == named("C12")[0]
    for frame in [out[0], *out[2:-1]]:
        assert b'},"logprobs":null,"finish_reason":' in frame
    assert all(b"logprobs" not in frame for frame in frames(ChatStream(), made))


@pytest.mark.wire("C13")
def test_chat_refusal() -> None:
    made = a_response().refusal("I cannot").finish()
    assert frames(ChatStream(), made)[1] == named("C13")[0]


def test_chat_length_after_a_call() -> None:
    made = a_response().call("f", "{", closed=False).finish("length")
    assert b'"finish_reason":"length"' in frames(ChatStream(), made)[-2]
    assert chat_body([made.log])["choices"][0]["finish_reason"] == "length"
    made = a_response().call("f", "{", closed=False).finish("content_filter")
    assert b'"finish_reason":"content_filter"' in frames(ChatStream(), made)[-2]


def test_chat_of_no_tokens_is_role_and_finish() -> None:
    made = a_response().finish()
    assert frames(ChatStream(), made) == named("C1", "C6", "[DONE]")
    assert chat_body([made.log])["choices"][0]["message"]["content"] == ""


def test_chat_custom_call() -> None:
    made = a_response().call("shell", "ls", kind="custom", call_id="own").finish()
    out = frames(ChatStream(), made)
    assert (
        b'{"tool_calls":[{"index":0,"id":"own","type":"custom",'
        b'"custom":{"name":"shell","input":""}}],' in out[1]
    )
    assert b'{"tool_calls":[{"index":0,"custom":{"input":"ls"}}],' in out[2]
    (call,) = chat_body([made.log])["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "own", "type": "custom", "custom": {"name": "shell", "input": "ls"}}


def test_chat_calls_are_numbered_without_the_other_items() -> None:
    made = a_response().text("a").call("f", "{}").text("b").call("g", "{}").finish()
    calls = chat_body([made.log])["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["call_r1_0_0", "call_r1_0_1"]
    folded = fold_chat(frames(ChatStream(), made))
    assert folded["choices"][0]["message"]["tool_calls"] == calls
    assert folded["choices"][0]["message"]["content"] == "ab"


def test_completion_text() -> None:
    made = a_response().text("Par", "is").finish("length")
    # The end came in a later step than the last text.
    out = frames(CompletionsStream(), made)
    assert out[0] == named("C14")[0]
    assert len(out) == 4
    stop = a_response().text("Par").finish()
    assert frames(CompletionsStream(), stop) == named("C14", "C17", "[DONE]")


def test_completion_finish_rides_on_the_text_of_its_step() -> None:
    made = a_response().text("Par", "is").finish("length")
    stream = CompletionsStream()
    first = stream.feed(0, [event for group in made.groups[:2] for event in group])
    last = stream.feed(0, [event for group in made.groups[2:] for event in group])
    assert first + last == named("C14", "C16", "[DONE]")
    whole = CompletionsStream().feed(0, made.log[:])
    assert whole == named("C14", "C16", "[DONE]")


@pytest.mark.wire("C15", "S11")
def test_completion_logprobs() -> None:
    entry = Logprob("Par", -0.1, b"Par", (TopLogprob("Par", -0.1, b"Par"),))
    made = a_response().tokens(entry).finish()
    out = frames(CompletionsStream(logprobs=True), made)
    assert out == named("C15", "C17", "[DONE]")


def test_completion_usage() -> None:
    made = a_response().text("Par").finish()
    out = frames(CompletionsStream(include_usage=True), made)
    assert out[-2:] == named("C18", "[DONE]")


def test_completion_failure_shows_the_text_before_it() -> None:
    made = a_response().text("Par").fail()
    assert CompletionsStream().feed(0, made.log[:]) == named("C14", "C9", "[DONE]")


def test_text_offset_is_real() -> None:
    tokens = [
        Logprob("The", -0.1, b"The"),
        Logprob(" ", -0.2, b" "),
        Logprob("\ufffd", -0.3, b"\xf0\x9f", (TopLogprob("x", -0.2, b"x"),)),
        Logprob("\ufffd", float("-inf"), b"\x98\x80"),
        Logprob("!", -0.5, b"!"),
    ]
    steps = a_response().send(Text("The ", tuple(tokens[:2]))).send(Text("😀!", tuple(tokens[2:])))
    log = steps.finish().log
    shown = completion_body([log], logprobs=True)["choices"][0]["logprobs"]
    assert shown["text_offset"] == [0, 3, 4, 4, 5]
    assert shown["tokens"] == ["The", " ", "\ufffd", "\ufffd", "!"]
    assert shown["token_logprobs"] == [-0.1, -0.2, -0.3, -9999.0, -0.5]
    assert shown["top_logprobs"][0] == {"The": -0.1}
    assert shown["top_logprobs"][2] == {"x": -0.2, "\ufffd": -0.3}
    folded = fold_completions(frames(CompletionsStream(logprobs=True), steps))
    assert folded["choices"][0]["logprobs"] == shown


def test_completions_have_no_channels() -> None:
    made = a_response().reasoning("r").text("a").refusal("b").call("f", "{}").finish()
    assert completion_body([made.log])["choices"][0]["text"] == "ab"
    folded = fold_completions(frames(CompletionsStream(), made))
    assert folded["choices"][0]["text"] == "ab"
    assert folded["choices"][0]["finish_reason"] == "stop"


# --- several choices ----------------------------------------------------------------------------


def test_roles_come_first_in_index_order_whoever_starts() -> None:
    builders = [a_response().text(text).finish() for text in "abc"]
    stream = ChatStream(choices=3, per_prompt=3, include_usage=True)
    out = [frame for choice in (2, 0, 1) for frame in stream.feed(choice, builders[choice].log[:])]
    parsed = [data for _, data in parse(out)]
    assert [chunk["choices"][0]["index"] for chunk in parsed[:3]] == [0, 1, 2]
    assert all(chunk["choices"][0]["delta"].get("role") for chunk in parsed[:3])
    assert [chunk["choices"][0]["index"] for chunk in parsed[3:-2]] == [2, 2, 0, 0, 1, 1]
    assert parsed[-2]["usage"]["prompt_tokens"] == 11
    assert parsed[-2]["usage"]["completion_tokens"] == 9
    assert parsed[-1] == "[DONE]"
    logs = [builder.log for builder in builders]
    assert fold_chat(out)["usage"] == chat_body(logs, per_prompt=3)["usage"]


@pytest.mark.parametrize("make", [ChatStream, CompletionsStream])
def test_each_prompt_is_counted_once(make: Any) -> None:
    usages = [Usage(10, 1, 4), Usage(10, 2, 9), Usage(20, 3, 5), Usage(20, 4, 9)]
    builders = [a_response().text("a").finish(usage=usage) for usage in usages]
    out = frames(make(choices=4, per_prompt=2, include_usage=True), *builders)
    shown = parse(out)[-2][1]["usage"]
    assert shown["prompt_tokens"] == 30
    assert shown["completion_tokens"] == 10
    assert shown["total_tokens"] == 40
    assert shown["prompt_tokens_details"] == {"cached_tokens": 9}
    logs = [builder.log for builder in builders]
    assert completion_body(logs, per_prompt=2)["usage"] == shown


@pytest.mark.parametrize("make", [ChatStream, CompletionsStream])
def test_one_failure_ends_the_call(make: Any) -> None:
    stream = make(choices=2, per_prompt=2)
    good, bad = a_response().text("a"), a_response().text("b").fail()
    stream.feed(0, good.log[:])
    assert stream.feed(1, bad.log[:])[-2:] == named("C9", "[DONE]")
    assert stream.ended
    assert stream.feed(0, good.text("more").groups[-1]) == []


@pytest.mark.parametrize("make", [ChatStream, CompletionsStream])
def test_a_cancelled_choice_has_no_finish(make: Any) -> None:
    stream = make(choices=2, per_prompt=2)
    stream.feed(0, a_response().text("a").cancel().log[:])
    assert not stream.ended
    out = stream.feed(1, a_response().text("b").finish().log[:])
    assert out[-1:] == named("[DONE]")
    assert stream.ended
    alone = make()
    assert alone.feed(0, a_response().cancel().log[:])[-1:] == named("[DONE]")
    assert b"finish_reason" not in b"".join(alone.feed(0, []))


def test_choices_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="3 choices cannot be 2 for each prompt"):
        ChatStream(choices=3, per_prompt=2)
    with pytest.raises(ValueError, match="has no choice 1"):
        CompletionsStream().feed(1, [])


@pytest.mark.parametrize("make", [ChatStream, CompletionsStream, ResponsesStream])
def test_a_feed_that_raises_has_changed_nothing(make: Any) -> None:
    """A bad echo is told at Created, before any frame; the stream is as good as new."""
    stream = make()
    bad: list[dict[str, Any]] = [{"model": "\ud800"}]
    bad += [{"model": "m", "top_p": math.nan}] if make is ResponsesStream else [{}, {"model": 1}]
    for echo in bad:
        # No machine gives the first: Accept refuses it. An event made by hand can hold it.
        begin = [ev.Created(0, "t", 1, False, echo), ev.InProgress(1)]
        with pytest.raises(ValueError, match=r"surrogates|must hold `model`|JSON compliant"):
            stream.feed(0, [*begin, ev.ItemAdded(2, 0, "message")])
    made = a_response().text("a").finish(stop="x").log[:]
    with pytest.raises(LogError, match="a stream begins with Created, not with ItemAdded"):
        stream.feed(0, made[2:])
    with pytest.raises(ValueError, match="no choice 1"):
        stream.feed(1, made)
    assert not stream.ended
    assert stream.feed(0, made) == make().feed(0, made)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e5])
def test_a_logprob_that_json_cannot_say_breaks_no_stream(value: float) -> None:
    entry = Logprob("a", value, b"a", (TopLogprob("a", value, b"a"),))
    made = a_response().tokens(entry).finish()
    for stream in (ChatStream(logprobs=True), CompletionsStream(logprobs=True), ResponsesStream()):
        assert b"-9999.0" in b"".join(frames(stream, made))
    assert completion_body([made.log], logprobs=True)["choices"][0]["logprobs"][
        "token_logprobs"
    ] == [-9999.0]


# --- bodies -------------------------------------------------------------------------------------

CHAT_BODY = (
    '{"id":"chatcmpl-r1","object":"chat.completion","created":1764500000,"model":"tiny",'
    '"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,'
    '"reasoning_content":null,"tool_calls":[{"id":"call_r1_0_0","type":"function","function":'
    '{"name":"get_weather","arguments":"{\\"city\\":\\"Oslo\\"}"}}]},"logprobs":null,'
    '"finish_reason":"tool_calls","stop_reason":null}],"usage":{"prompt_tokens":11,'
    '"completion_tokens":17,"total_tokens":28,"prompt_tokens_details":{"cached_tokens":0},'
    '"completion_tokens_details":{"reasoning_tokens":0}}}'
)


def test_the_chat_body_byte_for_byte() -> None:
    made = a_response().call("get_weather", '{"city":"Oslo"}').finish(usage=Usage(11, 17))
    body = chat_body([made.log])
    assert json.dumps(body, ensure_ascii=False, separators=(",", ":")) == CHAT_BODY
    assert chat_body([made.log[:]]) == body


def test_the_completion_body() -> None:
    made = a_response().text("Par", "is").finish(stop=7)
    body = completion_body([made.log])
    assert list(body) == ["id", "object", "created", "model", "choices", "usage"]
    assert (body["id"], body["object"]) == ("cmpl-r1", "text_completion")
    assert body["choices"] == [
        {
            "index": 0,
            "text": "Paris",
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": 7,
        }
    ]


@pytest.mark.parametrize("body", [chat_body, completion_body])
def test_logs_without_a_body(body: Any) -> None:
    for builder in (a_response().text("a"), a_response().fail()):
        with pytest.raises(LogError, match="only a log that ended"):
            body([builder.log])
    with pytest.raises(LogError, match="without choices"):
        body([])
