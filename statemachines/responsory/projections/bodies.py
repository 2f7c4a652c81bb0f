"""Unary bodies: folds of the same log as the streams.

Only Done events are read where a log has ended, so a compacted log gives the same body.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.compaction import without_deltas
from responsory.errors import LogError
from responsory.projections.chat import chat_call
from responsory.projections.choices import finish_reason, model_of, prompt_ids
from responsory.projections.logprobs import chat_logprobs, completion_logprobs
from responsory.projections.offsets import Offsets, done_offsets
from responsory.projections.reasoning import ReasoningField, names_of
from responsory.projections.resource import Resource
from responsory.projections.usage import call_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from responsory.projections.resource import Seal
    from responsory.values import Logprob, Usage


def response_body(
    log: Iterable[ev.Event], *, seal: Seal | None = None, tokens_as_ids: bool = False
) -> dict[str, Any]:
    """The Responses resource as of now. While a response runs, its open item is shown with the
    text so far. ``seal`` and ``tokens_as_ids`` as in ``ResponsesStream``. Raises LogError for an
    empty log."""
    resource = Resource(seal=seal, tokens_as_ids=tokens_as_ids)
    text: list[str] = []
    logprobs: list[Logprob] = []
    open_item: int | None = None
    for event in log:
        resource.apply(event)
        if isinstance(event, ev.TextDelta | ev.RefusalDelta | ev.ReasoningDelta | ev.InputDelta):
            open_item = event.item
            text.append(event.text)
            if isinstance(event, ev.TextDelta):
                logprobs += event.logprobs
        else:
            open_item = None
            text.clear()
            logprobs.clear()
    if resource.status is None:
        raise LogError("what does not begin with Created has no body")
    if open_item is not None:
        resource.text(open_item, "".join(text), tuple(logprobs))
    return {**resource.head(), **deepcopy(dict(resource.echo))}


TELLING = ev.Done | ev.Completed | ev.Incomplete
"""Events that are in a compacted log and tell token ids."""


class _Answer:
    """What chat and completions show of one choice."""

    def __init__(self, log: Iterable[ev.Event]) -> None:
        self.created: ev.Created | None = None
        self.ids: list[int] = []
        """Of all tokens that were told."""
        self.text: list[str] = []
        self.visible: list[ev.TextDone | ev.RefusalDone] = []
        """Text and refusals, in order."""
        self.refusal: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[ev.ItemAdded, str]] = []
        self.logprobs: list[Logprob] = []
        self.usage: Usage | None = None
        self.finish: str | None = None
        self.stop: str | int | None = None
        added: ev.ItemAdded | None = None
        # A text tells its cuts, from its deltas where they are there.
        for event in without_deltas(log):
            if isinstance(event, TELLING):
                self.ids += event.ids
            if isinstance(event, ev.Created):
                self.created = event
            elif isinstance(event, ev.ItemAdded):
                added = event
            elif isinstance(event, ev.TextDone):
                self.text.append(event.text)
                self.visible.append(event)
                self.logprobs += event.logprobs
            elif isinstance(event, ev.RefusalDone):
                self.refusal.append(event.text)
                self.visible.append(event)
            elif isinstance(event, ev.ReasoningDone):
                self.reasoning.append(event.text)
            elif isinstance(event, ev.InputDone) and added is not None:
                self.calls.append((added, event.text))
            elif isinstance(event, ev.Completed | ev.Incomplete):
                self.usage, self.stop = event.usage, event.stop
                self.finish = finish_reason(event)
            elif isinstance(event, ev.Cancelled):
                self.usage = event.usage

    def accepted(self) -> ev.Created:
        """Raises LogError unless the log began and ended, and not in a failure."""
        if self.created is None or self.usage is None:
            raise LogError("only a log that ended, and not in a failure, has a body")
        return self.created

    def offsets(self) -> list[int]:
        """Where each entry of ``logprobs`` begins in the visible text."""
        offsets, starts = Offsets(), list[int]()
        for done in self.visible:
            if isinstance(done, ev.TextDone):
                starts += done_offsets(offsets, done)
            else:
                offsets.skip(done.text)
        return starts

    def message(self, choice: int, names: Sequence[str]) -> dict[str, Any]:
        tail = self.accepted().id
        text, reasoning = "".join(self.text), "".join(self.reasoning) or None
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if self.calls and not text else text,
            "refusal": "".join(self.refusal) or None,
            **dict.fromkeys(names, reasoning),
        }
        if self.calls:
            message["tool_calls"] = [
                chat_call(added, tail, choice, call, text)
                for call, (added, text) in enumerate(self.calls)
            ]
        return message


def _answers(logs: Sequence[Iterable[ev.Event]]) -> list[_Answer]:
    if any(isinstance(log, ev.Event) for log in logs):
        raise TypeError("a call has a log for each of its choices: give them as a list")
    return [_Answer(log) for log in logs]


def chat_body(
    logs: Sequence[Iterable[ev.Event]],
    *,
    per_prompt: int = 1,
    logprobs: bool = False,
    token_ids: bool = False,
    tokens_as_ids: bool = False,
    reasoning_field: ReasoningField = "reasoning_content",
) -> dict[str, Any]:
    """The ChatCompletion of one call, from the log of each choice in index order. What the request
    asked for is as in ``ChatStream``.

    A cancelled choice has no finish reason. Raises LogError for a log that has not ended, or that
    ended in a failure: that is an error, not a body.
    """
    answers, names = _answers(logs), names_of(reasoning_field)
    choices: list[dict[str, Any]] = []
    for index, answer in enumerate(answers):
        called = answer.finish == "stop" and answer.calls
        entries = None
        # A stream has them on chunks of content alone.
        if logprobs and (any(answer.text) or answer.logprobs):
            entries = chat_logprobs(answer.logprobs, as_ids=tokens_as_ids)
        choices.append(
            {
                "index": index,
                "message": answer.message(index, names),
                "logprobs": entries,
                "finish_reason": "tool_calls" if called else answer.finish,
                "stop_reason": answer.stop,
                **({"token_ids": answer.ids} if token_ids else {}),
            }
        )
    body = _body(answers, ids.chat_id, "chat.completion", choices, per_prompt)
    if token_ids:
        body["prompt_token_ids"] = prompt_ids(answers[0].accepted())
    return body


def completion_body(
    logs: Sequence[Iterable[ev.Event]],
    *,
    per_prompt: int = 1,
    logprobs: bool = False,
    token_ids: bool = False,
    tokens_as_ids: bool = False,
) -> dict[str, Any]:
    """The Completion of one call, from the log of each choice in index order. What the request
    asked for is as in ``CompletionsStream``. Raises LogError as ``chat_body`` does."""
    answers = _answers(logs)
    choices: list[dict[str, Any]] = []
    for index, answer in enumerate(answers):
        arrays = None
        if logprobs and (any(done.text for done in answer.visible) or answer.logprobs):
            arrays = completion_logprobs(answer.logprobs, answer.offsets(), as_ids=tokens_as_ids)
        choices.append(
            {
                "index": index,
                "text": "".join(done.text for done in answer.visible),
                "logprobs": arrays,
                "finish_reason": answer.finish,
                "stop_reason": answer.stop,
            }
        )
        if token_ids:
            prompt = prompt_ids(answer.accepted())
            choices[-1] |= {"prompt_token_ids": prompt, "token_ids": answer.ids}
    return _body(answers, ids.completion_id, "text_completion", choices, per_prompt)


def _body(
    answers: Sequence[_Answer],
    public_id: Callable[[str], str],
    object_name: str,
    choices: list[dict[str, Any]],
    per_prompt: int,
) -> dict[str, Any]:
    created = [answer.accepted() for answer in answers]
    if not created:
        raise LogError("a call without choices has no body")
    usages = {index: answer.usage for index, answer in enumerate(answers) if answer.usage}
    return {
        "id": public_id(created[0].id),
        "object": object_name,
        "created": created[0].created_at,
        "model": model_of(created[0]),
        "choices": choices,
        "usage": call_usage(usages, per_prompt),
    }
