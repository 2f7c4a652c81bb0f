"""How a run is answered: the projection of a stream, the fold of a unary body."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import attrs

from responsory import EventLog
from responsory.events import Event
from responsory.projections import ChatStream, CompletionsStream, ResponsesStream
from responsory.projections.bodies import chat_body, completion_body, response_body
from responsory.projections.padding import Draw
from responsory.projections.reasoning import ReasoningField
from responsory.projections.responses import Profile

log = logging.getLogger(__name__)

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

    def last_words(self, message: str, shown: int, logs: Sequence[EventLog]) -> list[bytes]:
        """The end of a stream whose own projection cannot go on: an error frame, then the end.

        ``shown`` is how many frames the stream has had. With named events the numbers go on, and
        the failed resource comes as well, if ``logs`` ended so and can be folded.
        """
        error = {"type": "server_error", "code": "server_error", "message": message, "param": None}
        if not self.named_events:
            order = ("message", "type", "param", "code")
            return [_frame({"error": {key: error[key] for key in order}}), DONE]
        resource = self._failed(logs)
        if resource is not None:
            error["message"] = resource["error"]["message"]
        flat = {key: value for key, value in error.items() if key != "type"}
        frames = [_named("error", shown, {**flat, "error": error})]
        if resource is not None:
            frames.append(_named("response.failed", shown + 1, {"response": resource}))
        return [*frames, DONE]

    def _failed(self, logs: Sequence[EventLog]) -> dict[str, Any] | None:
        """The resource as it failed, None where it did not or cannot be told."""
        try:
            resource = self.body(logs)
            return resource if resource.get("status") == "failed" else None
        except Exception:
            log.exception("a failed answer cannot be folded")
            return None


def _named(kind: str, number: int, fields: dict[str, Any]) -> bytes:
    body = {"type": kind, "sequence_number": number, **fields}
    return f"event: {kind}\n".encode() + _frame(body)


def _frame(body: dict[str, Any]) -> bytes:
    data = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"data: {data}\n\n".encode()


def completions_answer(
    *,
    stream: bool,
    choices: int,
    per_prompt: int,
    include_usage: bool = False,
    continuous_usage: Sequence[int] | None = None,
    logprobs: bool = False,
    token_ids: bool = False,
    tokens_as_ids: bool = False,
    obfuscation: Draw | None = None,
) -> Answer:
    """A text completion of ``choices`` choices, ``per_prompt`` of each prompt.

    ``continuous_usage``: the tokens of each prompt, where every chunk tells the usage so far.
    """
    projection = CompletionsStream(
        choices=choices,
        per_prompt=per_prompt,
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        logprobs=logprobs,
        token_ids=token_ids,
        tokens_as_ids=tokens_as_ids,
        obfuscation=obfuscation,
    )
    fold = partial(
        completion_body,
        per_prompt=per_prompt,
        logprobs=logprobs,
        token_ids=token_ids,
        tokens_as_ids=tokens_as_ids,
    )
    return Answer(projection if stream else None, fold)


def chat_answer(
    *,
    stream: bool,
    choices: int,
    include_usage: bool = False,
    continuous_usage: Sequence[int] | None = None,
    logprobs: bool = False,
    token_ids: bool = False,
    tokens_as_ids: bool = False,
    reasoning_field: ReasoningField = "reasoning_content",
    obfuscation: Draw | None = None,
) -> Answer:
    """A chat completion of ``choices`` choices."""
    projection = ChatStream(
        choices=choices,
        per_prompt=choices,
        include_usage=include_usage,
        continuous_usage=continuous_usage,
        logprobs=logprobs,
        token_ids=token_ids,
        tokens_as_ids=tokens_as_ids,
        reasoning_field=reasoning_field,
        obfuscation=obfuscation,
    )
    fold = partial(
        chat_body,
        per_prompt=choices,
        logprobs=logprobs,
        token_ids=token_ids,
        tokens_as_ids=tokens_as_ids,
        reasoning_field=reasoning_field,
    )
    return Answer(projection if stream else None, fold)


def responses_answer(
    *,
    stream: bool,
    profile: Profile = "openai",
    tokens_as_ids: bool = False,
    obfuscation: Draw | None = None,
    seal: Callable[[str], str] | None = None,
) -> Answer:
    """A Responses resource, or the stream that ends in one; ``seal`` makes the envelopes of its
    reasoning."""
    projection = ResponsesStream(
        profile=profile, tokens_as_ids=tokens_as_ids, obfuscation=obfuscation, seal=seal
    )
    return Answer(
        projection if stream else None,
        lambda logs: response_body(logs[0], tokens_as_ids=tokens_as_ids, seal=seal),
        named_events=True,
    )
