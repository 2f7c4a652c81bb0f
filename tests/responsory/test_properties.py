"""Properties over random lives: replay equals live, compaction changes no body, streams fold to
bodies, and the cut of the text does not matter."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from responsory import events as ev
from responsory.commands import CallInput, Command, Fail, Reasoning, Refusal, Text
from responsory.errors import IllegalTransition
from responsory.log import EventLog
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
)
from responsory.response import Response
from responsory.testing import check_log, fold_chat, fold_completions, fold_responses
from responsory.testing.strategies import accepts, bodies, commands, endings, logs, splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.values import Logprob


@given(st.lists(commands, max_size=15))
def test_a_replayed_machine_is_the_live_one(word: list[Command]) -> None:
    live, log = Response(), EventLog()
    for command in word:
        before = live.view()
        try:
            log.extend(live.receive(command))
        except IllegalTransition:
            assert live.view() == before
        assert Response.replay(log).view() == live.view()
    check_log(list(log))


@given(logs())
def test_the_log_survives_its_rows(made: tuple[EventLog, list[int]]) -> None:
    log, _ = made
    for version in (log, log.compact()):
        text = [json.dumps(row) for row in version.rows()]
        assert EventLog.from_rows(map(json.loads, text)) == version


@given(logs(), st.booleans())
def test_compaction_changes_no_body(made: tuple[EventLog, list[int]], logprobs: bool) -> None:
    log, _ = made
    short = log.compact()
    assert not any(type(event) in ev.DELTAS for event in short)
    assert json.dumps(response_body(short)) == json.dumps(response_body(log))
    assert Response.replay(short).view() == Response.replay(log).view()
    if type(log[-1]) is not ev.Failed:
        for body in (chat_body, completion_body):
            assert body([short], logprobs=logprobs) == body([log], logprobs=logprobs)


def stream(projection: Any, made: tuple[EventLog, list[int]]) -> list[bytes]:
    """The frames, fed as the machine gave the events: one group at a time."""
    log, groups = made
    frames: list[bytes] = []
    start = 0
    for length in groups:
        assert not projection.ended
        frames += projection.feed(0, log[start : start + length])
        start += length
    assert projection.ended == log.terminal
    assert projection.feed(0, log[:]) == [] or not log.terminal
    return frames


@given(logs())
def test_the_responses_stream_folds_to_the_body(made: tuple[EventLog, list[int]]) -> None:
    log, _ = made
    frames = stream(ResponsesStream(), made)
    assert b"".join(frames) == b"".join(ResponsesStream().feed(0, log[:]))
    body = response_body(log)
    folded = fold_responses(frames)
    if body["status"] == "cancelled":
        shown = folded["status"]
        assert shown in ("queued", "in_progress")
        folded |= {"status": "cancelled", "usage": body["usage"]}
    assert json.dumps(folded) == json.dumps(body)
    terminal = [frame for frame in frames if b'"response":{' in frame][-1]
    if body["status"] != "cancelled":
        assert json.loads(terminal.decode().split("data: ")[1])["response"] == body


def no_failure(command: Command) -> bool:
    return not isinstance(command, Fail)


def plain(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice of the body with null text as "", as a folded stream has it."""
    message = {key: "" if value is None else value for key, value in choice["message"].items()}
    logprobs = choice["logprobs"] and choice["logprobs"]["content"]
    return {
        "message": message,
        "logprobs": logprobs or None,
        "finish_reason": choice["finish_reason"],
        "stop_reason": choice["stop_reason"],
    }


@given(logs(allowed=no_failure), st.booleans())
def test_the_chat_stream_folds_to_the_body(
    made: tuple[EventLog, list[int]], logprobs: bool
) -> None:
    log, _ = made
    frames = stream(ChatStream(include_usage=True, logprobs=logprobs), made)
    body = chat_body([log], logprobs=logprobs)
    folded = fold_chat(frames)
    folded["choices"][0]["logprobs"] = folded["choices"][0]["logprobs"] or None
    assert folded["choices"] == {0: plain(body["choices"][0])}
    assert folded["usage"] == body["usage"]


@given(logs(allowed=no_failure), st.booleans())
def test_the_completions_stream_folds_to_the_body(
    made: tuple[EventLog, list[int]], logprobs: bool
) -> None:
    log, _ = made
    frames = stream(CompletionsStream(include_usage=True, logprobs=logprobs), made)
    body = completion_body([log], logprobs=logprobs)
    folded = fold_completions(frames)
    expected = {key: value for key, value in body["choices"][0].items() if key != "index"}
    if not (expected["logprobs"] or {}).get("tokens"):
        expected["logprobs"] = None
    got = folded["choices"].get(0)
    if got is None:
        assert expected["finish_reason"] is None
        assert expected["text"] == ""
        return
    if not (got["logprobs"] or {}).get("tokens"):
        got["logprobs"] = None
    assert got == expected
    assert folded["usage"] == body["usage"]


def places(entries: Sequence[Logprob]) -> list[int]:
    """The character of each token's first byte."""
    raw = b"".join(entry.data for entry in entries)
    starts = itertools.accumulate((len(entry.data) for entry in entries), initial=0)
    return [len(raw[:start].decode(errors="ignore")) for start in starts][: len(entries)]


@st.composite
def respelled(draw: st.DrawFn) -> tuple[list[Command], list[Command]]:
    """A life, and the same one with every text cut anew: a logprob goes with the part in which its
    token begins, token ids with the first part."""
    word: list[Command] = [draw(accepts), *draw(st.lists(bodies, max_size=8)), draw(endings)]
    cut: list[Command] = []
    for command in word:
        if isinstance(command, Text):
            left, at, told = (
                [*zip(places(command.logprobs), command.logprobs, strict=True)],
                0,
                command.tokens,
            )
            for part in draw(splits(command.text)):
                at += len(part)
                given = tuple(entry for start, entry in left if start < at)
                left = left[len(given) :]
                cut.append(Text(part, given, command.phase, told))
                told = None
        elif isinstance(command, Refusal | Reasoning | CallInput):
            first, *rest = draw(splits(command.text))
            cut += [type(command)(first, command.tokens), *map(type(command), rest)]
        else:
            cut.append(command)
    return word, cut


def lived(word: list[Command]) -> EventLog:
    machine, log = Response(), EventLog()
    for command in word:
        try:
            log.extend(machine.receive(command))
        except IllegalTransition:
            continue
    return log


@given(respelled())
def test_the_cut_of_the_text_changes_no_body(words: tuple[list[Command], list[Command]]) -> None:
    whole, cut = lived(words[0]), lived(words[1])
    assert json.dumps(response_body(whole)) == json.dumps(response_body(cut))
    if whole.terminal and type(whole[-1]) is not ev.Failed:
        for body in (chat_body, completion_body):
            for log in (cut, cut.compact(), whole.compact()):
                shown = body([log], logprobs=True, tokens_as_ids=True)
                assert shown == body([whole], logprobs=True, tokens_as_ids=True)


@given(logs(ended=False))
def test_a_running_response_has_a_body(made: tuple[EventLog, list[int]]) -> None:
    log, _ = made
    for length in range(1, len(log) + 1):
        body = response_body(log[:length])
        assert body["usage"] is None
        assert body["status"] in ("queued", "in_progress")
        shown = sum(type(event) is ev.ItemAdded for event in log[:length])
        assert len(body["output"]) == shown
