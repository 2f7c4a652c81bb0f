"""Unary bodies: folds of the same log as the streams.

Only Done events are read where a log has ended, so a compacted log gives the same body.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.errors import LogError
from responsory.projections.chat import chat_call
from responsory.projections.choices import finish_reason, model_of
from responsory.projections.logprobs import chat_logprobs, completion_logprobs
from responsory.projections.offsets import Offsets
from responsory.projections.resource import Resource
from responsory.projections.usage import call_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from responsory.values import Logprob, Usage


def response_body(log: Iterable[ev.Event]) -> dict[str, Any]:
    """The Responses resource as of now. While a response runs, its open item is shown with the
    text so far. Raises LogError for an empty log."""
    resource = Resource()
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


class _Answer:
    """What chat and completions show of one choice."""

    def __init__(self, log: Iterable[ev.Event]) -> None:
        self.created: ev.Created | None = None
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
        for event in log:
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
                starts += offsets.take(done.text, done.logprobs)
            else:
                offsets.skip(done.text)
        return starts

    def message(self, choice: int) -> dict[str, Any]:
        tail = self.accepted().id
        text = "".join(self.text)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if self.calls and not text else text,
            "refusal": "".join(self.refusal) or None,
            "reasoning_content": "".join(self.reasoning) or None,
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
    logs: Sequence[Iterable[ev.Event]], *, per_prompt: int = 1, logprobs: bool = False
) -> dict[str, Any]:
    """The ChatCompletion of one call, from the log of each choice in index order.

    A cancelled choice has no finish reason. Raises LogError for a log that has not ended, or that
    ended in a failure: that is an error, not a body.
    """
    answers = _answers(logs)
    choices = []
    for index, answer in enumerate(answers):
        called = answer.finish == "stop" and answer.calls
        choices.append(
            {
                "index": index,
                "message": answer.message(index),
                "logprobs": chat_logprobs(answer.logprobs) if logprobs else None,
                "finish_reason": "tool_calls" if called else answer.finish,
                "stop_reason": answer.stop,
            }
        )
    return _body(answers, ids.chat_id, "chat.completion", choices, per_prompt)


def completion_body(
    logs: Sequence[Iterable[ev.Event]], *, per_prompt: int = 1, logprobs: bool = False
) -> dict[str, Any]:
    """The Completion of one call, from the log of each choice in index order. Raises LogError as
    ``chat_body`` does."""
    answers = _answers(logs)
    choices = [
        {
            "index": index,
            "text": "".join(done.text for done in answer.visible),
            "logprobs": completion_logprobs(answer.logprobs, answer.offsets())
            if logprobs
            else None,
            "finish_reason": answer.finish,
            "stop_reason": answer.stop,
        }
        for index, answer in enumerate(answers)
    ]
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
