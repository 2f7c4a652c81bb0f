"""How a run is answered: the projection of a stream, the fold of a unary body."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from antiphon.errors import AntiphonError
from responsory import EventLog
from responsory.events import Event
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.projections.bodies import chat_body, completion_body, response_body

DONE = b"data: [DONE]\n\n"


class StreamProjection(Protocol):
    """Events of the choices in, whole SSE frames out."""

    @property
    def ended(self) -> bool:
        """True once the last frame was given out."""
        ...

    def feed(self, choice: int, events: Sequence[Event]) -> list[bytes]:
        """The frames that these events of one choice give, in order."""
        ...


@attrs.frozen
class Answer:
    """``stream`` is None for a unary answer; ``body`` folds the finished logs into one."""

    stream: StreamProjection | None
    body: Callable[[Sequence[EventLog]], dict[str, Any]]
    named_events: bool = False
    """Whether the stream's frames have an ``event:`` line."""

    def last_words(self, error: AntiphonError) -> list[bytes]:
        """The end of a stream whose own projection cannot go on: an error frame, then the end."""
        body = error.body()
        if self.named_events:
            flat = {key: value for key, value in body["error"].items() if key != "type"}
            body = {"type": "error", **flat, **body}
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        name = "event: error\n" if self.named_events else ""
        return [f"{name}data: {data}\n\n".encode(), DONE]


def completions_answer(
    *, stream: bool, choices: int, per_prompt: int, include_usage: bool, logprobs: bool
) -> Answer:
    """A text completion of ``choices`` choices, ``per_prompt`` of each prompt."""
    return Answer(
        CompletionsStream(
            choices=choices, per_prompt=per_prompt, include_usage=include_usage, logprobs=logprobs
        )
        if stream
        else None,
        partial(completion_body, per_prompt=per_prompt, logprobs=logprobs),
    )


def chat_answer(*, stream: bool, choices: int, include_usage: bool, logprobs: bool) -> Answer:
    """A chat completion of ``choices`` choices."""
    return Answer(
        ChatStream(
            choices=choices, per_prompt=choices, include_usage=include_usage, logprobs=logprobs
        )
        if stream
        else None,
        partial(chat_body, per_prompt=choices, logprobs=logprobs),
    )


def responses_answer(*, stream: bool) -> Answer:
    """A Responses resource, or the stream that ends in one."""
    return Answer(
        ResponsesStream() if stream else None,
        lambda logs: response_body(logs[0]),
        named_events=True,
    )
