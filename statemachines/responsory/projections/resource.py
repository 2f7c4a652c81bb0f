"""The fold of events into a Responses resource: ids, items, status, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from responsory import events as ev
from responsory import ids
from responsory.projections.logprobs import entries
from responsory.projections.usage import response_usage
from responsory.states import State, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from responsory.values import JSON, Logprob

Seal: TypeAlias = "Callable[[str], str]"

INPUT_KEY = {"function_call": "arguments", "custom_tool_call": "input"}


class Resource:
    """The resource after the events applied so far. ``items`` and the parts in them are the JSON
    objects of the API, key order included; the Done events fill them, deltas are not needed.

    ``seal``: gives the ``encrypted_content`` of reasoning from its text, where the request asked
    for it; ``tokens_as_ids``: whether it asked for log probabilities to tell tokens so."""

    def __init__(self, *, seal: Seal | None = None, tokens_as_ids: bool = False) -> None:
        self._seal = seal
        self._as_ids = tokens_as_ids
        self.id = ""
        self.created_at = 0
        self.echo: Mapping[str, JSON] = {}
        self.completed_at: int | None = None
        self.status: Status | None = None
        self.error: dict[str, str] | None = None
        self.incomplete_details: dict[str, str] | None = None
        self.items: list[dict[str, Any]] = []
        self.usage: dict[str, Any] | None = None

    def apply(self, event: ev.Event) -> None:
        fold = FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def head(self) -> dict[str, Any]:
        """The first nine keys; ``echo`` follows them."""
        return {
            "id": ids.response_id(self.id),
            "object": "response",
            "created_at": self.created_at,
            "completed_at": self.completed_at,
            "status": self.status,
            "error": self.error,
            "incomplete_details": self.incomplete_details,
            "output": self.items,
            "usage": self.usage,
        }

    def created(self, event: ev.Created) -> None:
        self.id = event.id
        self.created_at = event.created_at
        self.echo = event.echo
        self.status = (State.QUEUED if event.background else State.IDLE).status

    def in_progress(self, _: ev.InProgress) -> None:
        self.status = State.IDLE.status

    def item_added(self, event: ev.ItemAdded) -> None:
        item: dict[str, Any] = {
            "type": event.type,
            "id": ids.item_id(event.type, self.id, event.item),
        }
        if event.type == "message":
            item |= {"status": "in_progress", "role": "assistant", "content": []}
            if event.phase is not None:
                item["phase"] = event.phase
        elif event.type == "reasoning":
            item |= {"status": "in_progress", "summary": [], "content": []}
            if self._seal is not None:
                item["encrypted_content"] = ""
        else:
            item |= {
                "call_id": event.call_id or ids.call_id(self.id, event.item),
                "name": event.name,
                INPUT_KEY[event.type]: "",
                "status": "in_progress",
            }
        self.items.append(item)

    def part_added(self, event: ev.PartAdded) -> None:
        part: dict[str, Any] = {"type": event.type}
        if event.type == "refusal":
            part["refusal"] = ""
        elif event.type == "output_text":
            part |= {"text": "", "annotations": [], "logprobs": []}
        else:
            part["text"] = ""
        self.items[event.item]["content"].append(part)

    def text(self, item: int, text: str, logprobs: tuple[Logprob, ...] = ()) -> None:
        """The text, so far or for good, of the open part of ``item``, or of its call's input."""
        target = self.items[item]
        if target["type"] in INPUT_KEY:
            target[INPUT_KEY[target["type"]]] = text
            return
        part = target["content"][-1]
        part["refusal" if part["type"] == "refusal" else "text"] = text
        if part["type"] == "output_text":
            part["logprobs"] = entries(logprobs, as_ids=self._as_ids)

    def text_done(self, event: ev.TextDone) -> None:
        self.text(event.item, event.text, event.logprobs)

    def reasoning_done(self, event: ev.ReasoningDone) -> None:
        self.text(event.item, event.text)
        if self._seal is not None:
            self.items[event.item]["encrypted_content"] = self._seal(event.text)

    def done(self, event: ev.RefusalDone | ev.InputDone) -> None:
        self.text(event.item, event.text)

    def item_done(self, event: ev.ItemDone) -> None:
        self.items[event.item]["status"] = event.status

    def completed(self, event: ev.Completed) -> None:
        self.status = State.COMPLETED.status
        self.completed_at = event.completed_at
        self.usage = response_usage(event.usage)

    def incomplete(self, event: ev.Incomplete) -> None:
        self.status = State.INCOMPLETE.status
        self.incomplete_details = {"reason": event.reason}
        self.usage = response_usage(event.usage)

    def failed(self, event: ev.Failed) -> None:
        self.status = State.FAILED.status
        self.error = {"code": event.code, "message": event.message}
        self.usage = response_usage(event.usage)

    def cancelled(self, event: ev.Cancelled) -> None:
        self.status = State.CANCELLED.status
        self.usage = response_usage(event.usage)


FOLDS: dict[type[ev.Event], Callable[[Resource, Any], None]] = {
    ev.Created: Resource.created,
    ev.InProgress: Resource.in_progress,
    ev.ItemAdded: Resource.item_added,
    ev.PartAdded: Resource.part_added,
    ev.TextDone: Resource.text_done,
    ev.RefusalDone: Resource.done,
    ev.ReasoningDone: Resource.reasoning_done,
    ev.InputDone: Resource.done,
    ev.ItemDone: Resource.item_done,
    ev.Completed: Resource.completed,
    ev.Incomplete: Resource.incomplete,
    ev.Failed: Resource.failed,
    ev.Cancelled: Resource.cancelled,
}
