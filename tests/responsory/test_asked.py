"""What a request can ask a stream and a body for: token ids, counts on every chunk, tokens as ids,
the name of reasoning, padding, sealed reasoning. Who does not ask sees nothing of it."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responsory import events as ev
from responsory.check import check_stream
from responsory.commands import CallInput, CallOpened, Command, Reasoning, Refusal, Text
from responsory.errors import IllegalTransition
from responsory.log import EventLog
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
    resume,
)
from responsory.projections.padding import BUCKET
from responsory.response import Response
from responsory.testing import a_response, check_log, fold_chat, fold_completions, fold_responses
from responsory.testing.folds import parse
from responsory.testing.strategies import bodies, counted, endings, logs, token_ids
from responsory.values import JSON, Logprob, Tokens, TopLogprob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.testing.streams import Builder

ECHO: dict[str, JSON] = {"model": "tiny", "prompt_token_ids": [5, 6]}


def letters(count: int) -> str:
    return "x" * count


def counts(output: int) -> dict[str, int]:
    return {"prompt_tokens": 11, "completion_tokens": output, "total_tokens": 11 + output}


def told(*ids: int, output: int = 0) -> Tokens:
    return Tokens(ids, output)


def answered() -> Builder:
    """Reasoning, text, a refusal and a call, with ids that each delta tells."""
    return (
        a_response(echo=ECHO)
        .send(Reasoning("2+2", told(100, 1, output=2)))
        .send(Text("It is", (), None, told(101, 2, output=4)))
        .send(Text(" 4.", (), None, told(3, output=5)))
        .send(Refusal("No", told(4, output=6)))
        .send(CallOpened("function", "f"))
        .send(CallInput("{}", told(102, 5, 6, output=9)))
        .finish(ids=(103, 2))
    )


def data_of(frames: Sequence[bytes]) -> list[Any]:
    return [data for _, data in parse(frames)]


# --- token ids ----------------------------------------------------------------------------------


def test_the_ids_of_a_chat_stream() -> None:
    chunks = data_of(ChatStream(token_ids=True).feed(0, answered().log[:]))
    ids = [chunk["choices"][0]["token_ids"] for chunk in chunks[:-1]]
    assert ids == [[], [100, 1], [101, 2], [3], [4], [], [102, 5, 6], [103, 2]]
    assert all(list(chunk["choices"][0])[-1] == "token_ids" for chunk in chunks[:-1])
    assert chunks[0]["prompt_token_ids"] == [5, 6]
    assert list(chunks[0])[-1] == "prompt_token_ids"
    assert not any("prompt_token_ids" in chunk for chunk in chunks[1:-1])


def test_the_ids_of_a_chat_body() -> None:
    log = answered().log
    body = chat_body([log], token_ids=True)
    assert list(body)[-1] == "prompt_token_ids"
    assert body["prompt_token_ids"] == [5, 6]
    assert list(body["choices"][0])[-1] == "token_ids"
    assert body["choices"][0]["token_ids"] == [100, 1, 101, 2, 3, 4, 102, 5, 6, 103, 2]
    assert chat_body([log.compact()], token_ids=True) == body
    assert not {"token_ids", "prompt_token_ids"} & {*chat_body([log]), *body["usage"]}


def test_the_ids_of_a_completion_ride_on_the_next_chunk() -> None:
    """Reasoning and calls have no chunk, and their ids come in order all the same."""
    made = answered()
    frames = [
        frame
        for stream in [CompletionsStream(token_ids=True)]
        for group in made.groups
        for frame in stream.feed(0, group)
    ]
    choices = [chunk["choices"][0] for chunk in data_of(frames)[:-1]]
    assert [choice["token_ids"] for choice in choices] == [
        [100, 1, 101, 2], [3], [4], [102, 5, 6, 103, 2],
    ]  # fmt: skip
    assert [choice["text"] for choice in choices] == ["It is", " 4.", "No", ""]
    assert list(choices[0])[-2:] == ["prompt_token_ids", "token_ids"]
    assert choices[0]["prompt_token_ids"] == [5, 6]
    assert not any("prompt_token_ids" in choice for choice in choices[1:])
    body = completion_body([made.log], token_ids=True)["choices"][0]
    assert list(body)[-2:] == ["prompt_token_ids", "token_ids"]
    assert body["token_ids"] == [100, 1, 101, 2, 3, 4, 102, 5, 6, 103, 2]


def test_the_ids_of_one_feed_are_in_order() -> None:
    """The text that is held for the finish reason tells what came after it too."""
    chunks = data_of(CompletionsStream(token_ids=True).feed(0, answered().log[:]))
    ids = [chunk["choices"][0]["token_ids"] for chunk in chunks[:-1]]
    assert list(itertools.chain.from_iterable(ids)) == [100, 1, 101, 2, 3, 4, 102, 5, 6, 103, 2]
    assert [chunk["choices"][0]["text"] for chunk in chunks[:-1]] == ["It is", " 4.", "No"]


@pytest.mark.parametrize(
    "command",
    [
        Text("", (), None, told(7)), Reasoning("", told(7)), Refusal("", told(7)),
        CallInput("", told(7)),
    ],
)  # fmt: skip
def test_ids_without_text_are_told_to_who_asked(command: Command) -> None:
    made = a_response(echo=ECHO).send(CallOpened("function", "f")).send(command)
    made.finish(ids=(8,))
    check_log(made.log[:])
    assert Response.replay(made.log.compact()).view() == made.machine.view()
    frames = ChatStream(token_ids=True).feed(0, made.log[:])
    assert check_stream(frames).accepted
    assert data_of(frames)[2]["choices"][0] == {
        "index": 0, "delta": {"reasoning_content": None}, "finish_reason": None, "token_ids": [7],
    }  # fmt: skip
    assert len(ChatStream().feed(0, made.log[:])) == 4  # role, call, finish, [DONE]
    assert len(ChatStream(logprobs=True).feed(0, made.log[:])) == 4
    text = CompletionsStream(token_ids=True).feed(0, made.log[:])
    assert check_stream(text).accepted
    assert data_of(text)[0]["choices"][0]["token_ids"] == [7, 8]
    assert len(CompletionsStream(logprobs=True).feed(0, made.log[:])) == 2


def test_a_chunk_of_ids_alone_has_no_logprobs() -> None:
    """Nor has the body, where all chunks are so."""
    made = a_response(echo=ECHO).send(Text("", (), None, told(7)))
    first = CompletionsStream(token_ids=True, logprobs=True).feed(0, made.log[:])
    assert [chunk["choices"][0]["logprobs"] for chunk in data_of(first)] == [None]
    body = completion_body([made.finish().log], token_ids=True, logprobs=True)
    assert body["choices"][0]["logprobs"] is None


@pytest.mark.parametrize("stream", [ChatStream, CompletionsStream])
def test_the_ids_of_the_prompt_are_in_the_echo(stream: Any) -> None:
    lacking: list[dict[str, JSON]] = [{"model": "m"}, {"model": "m", "prompt_token_ids": 5}]
    for echo in lacking:
        log = a_response(echo=echo).text("a").finish().log
        with pytest.raises(ValueError, match="echo must hold `prompt_token_ids`"):
            stream(token_ids=True).feed(0, log[:])
        with pytest.raises(ValueError, match="echo must hold `prompt_token_ids`"):
            (chat_body if stream is ChatStream else completion_body)([log], token_ids=True)
        assert stream().feed(0, log[:])


# --- counts on every chunk ----------------------------------------------------------------------


def test_counts_on_every_chunk() -> None:
    log = answered().log[:]
    chunks = data_of(ChatStream(include_usage=True, continuous_usage=[11]).feed(0, log))
    shown = [chunk["usage"]["completion_tokens"] for chunk in chunks[:-1]]
    assert shown == [0, 2, 4, 5, 6, 6, 9, 3, 3]
    assert chunks[1]["usage"] == counts(2)
    assert chunks[-2]["choices"] == []
    assert "prompt_tokens_details" in chunks[-2]["usage"]
    alone = data_of(ChatStream(continuous_usage=[11]).feed(0, log))
    assert alone == [*chunks[:-2], chunks[-1]]


def test_counts_are_summed_over_choices_and_prompts() -> None:
    stream = CompletionsStream(choices=4, per_prompt=2, continuous_usage=[11, 5])
    shown = []
    for choice, output in [(0, 1), (1, 1), (3, 2), (2, 1), (0, 4)]:
        made = a_response().send(Text("a", (), None, told(output=output)))
        events = made.log[:] if output < 4 else made.log[-1:]
        shown += data_of(stream.feed(choice, events))
    assert [chunk["usage"]["completion_tokens"] for chunk in shown] == [1, 2, 4, 5, 8]
    assert {chunk["usage"]["prompt_tokens"] for chunk in shown} == {16}
    assert shown[-1]["usage"]["total_tokens"] == 24


# --- tokens as ids ------------------------------------------------------------------------------

DRAWN = Logprob("a", -0.5, b"a", (TopLogprob("a", -0.5, b"a", 7), TopLogprob("b", -2.0, b"b")), 7)
UNTOLD = Logprob("c", -0.25, b"c")


def test_tokens_as_ids() -> None:
    made = a_response(echo=ECHO).tokens(DRAWN, UNTOLD).finish()
    log = made.log[:]
    names = ["token_id:7", "c"]
    for asked in (False, True):
        due = names if asked else ["a", "c"]
        chat = fold_chat(ChatStream(logprobs=True, tokens_as_ids=asked).feed(0, log))
        body = chat_body([log], logprobs=True, tokens_as_ids=asked)["choices"][0]
        assert chat["choices"][0]["logprobs"] == body["logprobs"]["content"]
        assert [entry["token"] for entry in body["logprobs"]["content"]] == due
        tops = body["logprobs"]["content"][0]["top_logprobs"]
        assert [top["token"] for top in tops] == [due[0], "b"]
        assert body["logprobs"]["content"][0]["bytes"] == [97]
        text = fold_completions(CompletionsStream(logprobs=True, tokens_as_ids=asked).feed(0, log))[
            "choices"
        ][0]
        arrays = completion_body([log], logprobs=True, tokens_as_ids=asked)["choices"][0][
            "logprobs"
        ]
        assert text["logprobs"] == arrays
        assert arrays["tokens"] == due
        assert arrays["top_logprobs"] == [{due[0]: -0.5, "b": -2.0}, {"c": -0.25}]
        assert arrays["text_offset"] == [0, 1]
        resource = response_body(log, tokens_as_ids=asked)
        assert fold_responses(ResponsesStream(tokens_as_ids=asked).feed(0, log)) == resource
        part = resource["output"][0]["content"][0]
        assert [entry["token"] for entry in part["logprobs"]] == due


# --- the name of reasoning ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("reasoning_content", ["reasoning_content"]),
        ("reasoning", ["reasoning"]),
        ("both", ["reasoning_content", "reasoning"]),
    ],
)
def test_the_name_of_reasoning(field: Any, names: list[str]) -> None:
    log = answered().log[:]
    frames = ChatStream(reasoning_field=field).feed(0, log)
    assert check_stream(frames).accepted
    deltas = [chunk["choices"][0]["delta"] for chunk in data_of(frames)[:-1]]
    due: dict[str, Any] = dict.fromkeys(names, "2+2")
    assert deltas[1] == due
    for delta in [deltas[0], *deltas[2:]]:
        assert {name: delta[name] for name in names} == dict.fromkeys(names)
        assert {"reasoning", "reasoning_content"} & delta.keys() == set(names)
    message = chat_body([log], reasoning_field=field)["choices"][0]["message"]
    assert list(message) == ["role", "content", "refusal", *names, "tool_calls"]
    assert {name: message[name] for name in names} == due
    (folded,) = fold_chat(frames)["choices"].values()
    assert {name: folded["message"][name] for name in names} == due


def test_no_other_name_of_reasoning() -> None:
    bad: Any = "thoughts"
    for make in (
        lambda: ChatStream(reasoning_field=bad),
        lambda: chat_body([], reasoning_field=bad),
    ):
        with pytest.raises(
            ValueError, match=r"^no reasoning field `thoughts`; known: reasoning_con"
        ):
            make()


# --- padding ------------------------------------------------------------------------------------

WORDS = ["a", "é", "\u2028", '"', " there", "\n\n", "😀😀", " the longest of them all"]


def padded(stream: Any, make: Callable[[str], Command]) -> list[int]:
    """The sizes of the frames of one delta for each word, in one open part."""
    made = a_response(echo=ECHO).send(CallOpened("function", "f")).send(make("x"))
    stream.feed(0, made.log[:])
    sizes = []
    for word in WORDS:
        (frame,) = stream.feed(0, made.machine.receive(make(word)))
        assert check_stream(frame, api="chat").violation is not None  # half a stream
        data = json.loads(frame.decode().split("data: ")[1])
        assert list(data)[-1] == "obfuscation"
        assert data["obfuscation"] == "x" * len(data["obfuscation"]) != ""
        sizes.append(len(frame))
    return sizes


@pytest.mark.parametrize("make", [Text, Reasoning, CallInput])
@pytest.mark.parametrize(
    "stream", [ResponsesStream, ChatStream, CompletionsStream], ids=lambda stream: stream.__name__
)
def test_the_size_of_a_padded_delta_does_not_tell_a_short_word(stream: Any, make: Any) -> None:
    if stream is CompletionsStream and make is not Text:
        make = Refusal
    sizes = padded(stream(obfuscation=letters), make)
    assert len(set(sizes)) <= 2
    assert {(size - sizes[0]) % BUCKET for size in sizes} == {0}


def test_the_number_of_a_padded_event_does_not_move_it() -> None:
    stream = ResponsesStream(obfuscation=letters)
    made = a_response().text("a")
    stream.feed(0, made.log[:])
    sizes = {
        len(frame) for _ in range(120) for frame in stream.feed(0, made.machine.receive(Text("a")))
    }
    assert len(sizes) == 1


def test_what_is_not_padded() -> None:
    """A refusal and a custom call have no such key in the Open Responses schema; nothing else does
    that is no delta."""
    made = a_response(echo=ECHO).reasoning("r").text("t").refusal("n").call("f", "i")
    log = made.call("g", "c", kind="custom").finish().log
    frames = ResponsesStream(obfuscation=letters).feed(0, log[:])
    assert check_stream(frames).accepted
    names = {name for name, data in parse(frames) if "obfuscation" in data}
    assert names == {
        "response.reasoning_text.delta", "response.output_text.delta",
        "response.function_call_arguments.delta",
    }  # fmt: skip
    chunks = data_of(ChatStream(include_usage=True, obfuscation=letters).feed(0, log[:]))
    assert [bool(chunk["choices"]) for chunk in chunks[:-1]] == [
        "obfuscation" in chunk for chunk in chunks[:-1]
    ]


def test_a_resumed_frame_differs_in_its_padding_alone() -> None:
    log = answered().log
    first = ResponsesStream(obfuscation=letters).feed(0, log[:])
    again = resume(ResponsesStream(obfuscation=lambda count: "y" * count), log, 3)
    assert first[4:] != again
    assert [frame.replace(b"x", b"y") for frame in first[4:]] == [
        frame.replace(b"x", b"y") for frame in again
    ]


# --- sealed reasoning ---------------------------------------------------------------------------


def test_sealed_reasoning() -> None:
    log = a_response().reasoning("2+2", " is 4").text("4").reasoning("5").finish("length").log

    def seal(text: str) -> str:
        return f"<{text}>"

    frames = ResponsesStream(seal=seal).feed(0, log[:])
    assert check_stream(frames).accepted
    events = list(parse(frames))
    items = [data["item"] for name, data in events if name and "output_item" in name]
    assert [item.get("encrypted_content") for item in items] == [
        "",
        "<2+2 is 4>",
        None,
        None,
        "",
        "<5>",
    ]
    assert all(
        list(item)[-1] == "encrypted_content" for item in items if item["type"] == "reasoning"
    )
    body = response_body(log, seal=seal)
    assert body == response_body(log.compact(), seal=seal) == events[-2][1]["response"]
    assert [item.get("encrypted_content") for item in body["output"]] == ["<2+2 is 4>", None, "<5>"]
    assert fold_responses(frames) == body
    running = response_body(log[:6], seal=seal)["output"][0]
    assert (running["content"][0]["text"], running["encrypted_content"]) == ("2+2 is 4", "")
    assert "encrypted_content" not in json.dumps([response_body(log)])


# --- whatever the life --------------------------------------------------------------------------

ALONE = st.builds(Tokens, token_ids.filter(bool), st.just(0))
told_bodies: st.SearchStrategy[Command] = st.one_of(
    bodies,
    st.builds(lambda tokens: Text("", (), None, tokens), ALONE),
    st.builds(Refusal, st.just(""), ALONE),
    st.builds(Reasoning, st.just(""), ALONE),
    st.builds(CallInput, st.just(""), ALONE),
)


@st.composite
def lives(draw: st.DrawFn) -> tuple[EventLog, list[list[ev.Event]]]:
    """A log with its groups, in which ids may come without text."""
    machine = Response()
    groups = [*a_response(echo=ECHO).groups]
    machine.apply(groups[0])
    for command in counted([*draw(st.lists(told_bodies, max_size=10)), draw(endings)]):
        try:
            groups.append(machine.receive(command))
        except IllegalTransition:
            continue
    return EventLog([event for group in groups for event in group]), groups


ASKED = st.fixed_dictionaries(
    {
        "logprobs": st.booleans(),
        "token_ids": st.booleans(),
        "tokens_as_ids": st.booleans(),
        "include_usage": st.booleans(),
        "continuous_usage": st.none() | st.just([0]),
        "obfuscation": st.sampled_from([None, letters]),
    }
)


def all_ids(log: Sequence[ev.Event]) -> list[int]:
    return [token for event in log for token in getattr(event, "ids", ())]


@given(lives(), ASKED, st.sampled_from(["reasoning_content", "reasoning", "both"]))
def test_what_is_asked_of_chat(
    life: tuple[EventLog, list[list[ev.Event]]], asked: dict[str, Any], field: Any
) -> None:
    log, groups = life
    stream = ChatStream(reasoning_field=field, **asked)
    frames = [frame for group in groups for frame in stream.feed(0, group)]
    report = check_stream(frames)
    assert report.accepted, str(report)
    ending = type(log[-1])
    if ending is ev.Failed:
        return
    settings = {key: asked[key] for key in ("logprobs", "token_ids", "tokens_as_ids")}
    body = chat_body([log], reasoning_field=field, **settings)
    assert chat_body([log.compact()], reasoning_field=field, **settings) == body
    assert report.result is not None
    if not asked["include_usage"]:
        report.result["usage"] = body["usage"] = None
    assert report.result == body
    folded = fold_chat(frames)["choices"][0]
    if asked["token_ids"]:
        assert folded["token_ids"] == body["choices"][0]["token_ids"] == all_ids(log)


@given(lives(), ASKED)
def test_what_is_asked_of_completions(
    life: tuple[EventLog, list[list[ev.Event]]], asked: dict[str, Any]
) -> None:
    log, groups = life
    stream = CompletionsStream(**asked)
    frames = [frame for group in groups for frame in stream.feed(0, group)]
    report = check_stream(frames)
    assert report.accepted, str(report)
    if not isinstance(log[-1], ev.Completed | ev.Incomplete):
        return
    settings = {key: asked[key] for key in ("logprobs", "token_ids", "tokens_as_ids")}
    body = completion_body([log], **settings)
    assert completion_body([log.compact()], **settings) == body
    assert report.result is not None
    if not asked["include_usage"]:
        report.result["usage"] = body["usage"] = None
    assert report.result == body
    if asked["token_ids"]:
        assert body["choices"][0]["token_ids"] == all_ids(log)


@given(lives())
def test_ids_without_text_are_kept_by_the_log(
    life: tuple[EventLog, list[list[ev.Event]]],
) -> None:
    log, _ = life
    check_log(log[:])
    whole = Response.replay(log)
    for stored in (log, log.compact()):
        again = EventLog.from_rows(stored.rows())
        assert again == stored
        assert Response.replay(again).view() == whole.view()


@given(logs(), st.booleans())
def test_what_is_asked_of_responses(made: tuple[EventLog, list[int]], as_ids: bool) -> None:
    log, _ = made
    seal: Any = "{}!".format
    frames = ResponsesStream(obfuscation=letters, seal=seal, tokens_as_ids=as_ids).feed(0, log[:])
    report = check_stream(frames)
    body = response_body(log, seal=seal, tokens_as_ids=as_ids)
    assert response_body(log.compact(), seal=seal, tokens_as_ids=as_ids) == body
    if report.accepted:  # two calls of a life may have one id
        if body["status"] == "cancelled":
            body["usage"] = None
        assert report.result == body
    else:
        assert report.violation is not None
        assert report.violation.rule == "call-id-unique"
