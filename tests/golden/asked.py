"""Answers to requests that asked for more than their text, each at the endpoint that it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from golden.built import OSLO, TOOLS, begun, used
from responsory import EventLog, Logprob, Tokens, TopLogprob
from responsory.commands import CallInput, CallOpened, Reasoning, Refusal, Text
from responsory.projections import (
    ChatStream,
    CompletionsStream,
    ResponsesStream,
    chat_body,
    completion_body,
    response_body,
)
from responsory.projections.text import dumps

if TYPE_CHECKING:
    from responsory.testing.streams import Builder

Endpoint = Literal["responses", "chat", "completions"]


def letters(count: int) -> str:
    """Padding that is not random."""
    return "x" * count


def seal(text: str) -> str:
    return f"sealed: {len(text)} characters"


@attrs.frozen
class Case:
    """``logs``: of each choice. ``stream``, ``body``: what each is made with."""

    endpoint: Endpoint
    logs: Sequence[EventLog]
    stream: Mapping[str, Any]
    body: Mapping[str, Any]

    def files(self, logs: Sequence[EventLog]) -> dict[str, bytes]:
        """The bytes of the stream, each log in one feed, and the body."""
        make, body = MAKERS[self.endpoint]
        stream = make(**self.stream)
        frames = [frame for at, log in enumerate(logs) for frame in stream.feed(at, log[:])]
        return {"stream.sse": b"".join(frames), "body.json": body(logs, self.body)}


def one_line(body: Mapping[str, Any]) -> bytes:
    return dumps(body).encode() + b"\n"


MAKERS: Mapping[Endpoint, tuple[Any, Any]] = {
    "responses": (ResponsesStream, lambda logs, asked: one_line(response_body(logs[0], **asked))),
    "chat": (ChatStream, lambda logs, asked: one_line(chat_body(logs, **asked))),
    "completions": (
        CompletionsStream,
        lambda logs, asked: one_line(completion_body(logs, **asked)),
    ),
}


def told(output: int, *ids: int) -> Tokens:
    return Tokens(ids, output)


def asking() -> Builder:
    return begun(prompt_token_ids=[1, 40, 41])


def identified(text: str, logprob: float | None, token: int) -> Logprob:
    """A token with its id and one alternative, but for one that nothing stands before."""
    data = text.encode()
    if logprob is None:
        return Logprob(text, None, data, (), token)
    others = TopLogprob(text, logprob, data, token), TopLogprob("é", -3.5, "é".encode(), 9)
    return Logprob(text, logprob, data, others, token)


PROMPT = tuple(
    identified(*entry)
    for entry in [("", None, 1), ("Once", -2.0, 40), (" up", -0.5, 41), ("on", -0.25, 42)]
)
"""An echoed prompt: a start token that the text does not show, and three that it does."""
A, TIME = identified(" a", -0.125, 43), identified(" time", -0.5, 44)

CASES: Mapping[str, Case] = {
    "chat/token-ids-and-counts": Case(
        "chat",
        [
            asking()
            .send(Reasoning("2+2", told(4, 100, 7, 8, 9)))
            .send(Reasoning(" is 4.", told(6, 10, 11)))
            .send(Text("Four", (), None, told(8, 101, 12)))
            .send(Text(". Hence", (), None, told(9, 13)))
            .send(CallOpened("function", "get_weather"))
            .send(CallInput('{"city":', told(12, 102, 14, 15)))
            .send(CallInput('"Oslo"}', told(13, 16)))
            .finish(usage=used(15, reasoning=5), ids=(103, 2))
            .log
        ],
        {"include_usage": True, "continuous_usage": [11], "token_ids": True},
        {"token_ids": True},
    ),
    "chat/two-choices-padded": Case(
        "chat",
        [
            asking().send(Text("One", (), None, told(1, 60))).finish(usage=used(2), ids=(2,)).log,
            asking().send(Refusal("I cann", told(2, 50, 51))).finish("length", usage=used(3)).log,
        ],
        {
            "choices": 2, "per_prompt": 2, "include_usage": True, "token_ids": True,
            "obfuscation": letters,
        },
        {"per_prompt": 2, "token_ids": True},
    ),
    "chat/both-names-of-reasoning": Case(
        "chat",
        [begun().reasoning("2+2", " is 4.").text("4").finish(usage=used(9, reasoning=6)).log],
        {"reasoning_field": "both"},
        {"reasoning_field": "both"},
    ),
    "chat/tokens-as-ids": Case(
        "chat",
        [begun().tokens(A, TIME).finish(usage=used(3)).log],
        {"logprobs": True, "tokens_as_ids": True},
        {"logprobs": True, "tokens_as_ids": True},
    ),
    "completions/echo": Case(
        "completions",
        [
            asking()
            .send(Text("Once upon", PROMPT))
            .send(Text(" a", (A,), None, told(1, 43)))
            .send(Text(" time", (TIME,), None, told(2, 44)))
            .finish("length", usage=used(2))
            .log
        ],
        {"include_usage": True, "continuous_usage": [11], "logprobs": True, "token_ids": True},
        {"logprobs": True, "token_ids": True},
    ),
    "responses/sealed-and-padded": Case(
        "responses",
        [
            begun(tools=TOOLS)
            .reasoning("2+2", " is 4.")
            .text("Four", ". Hence")
            .call("get_weather", *OSLO)
            .finish(usage=used(17, reasoning=6))
            .log
        ],
        {"obfuscation": letters, "seal": seal},
        {"seal": seal},
    ),
}  # fmt: skip
"""By name, as the folders under ``fixtures/asked`` are called."""
