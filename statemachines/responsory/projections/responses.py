"""The Responses API stream: one ``event:``/``data:`` frame per event, Cancelled excepted.

A delta, the frame of the per-token path, is a prefix made once per part, the sequence number and
the escaped text. All other frames show the resource that the events folded to. Frames depend on the
log alone, so a resumed reader gets the same bytes; obfuscation is all that may differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from responsory import events as ev
from responsory.events import TextDelta
from responsory.projections.choices import check_begin
from responsory.projections.logprobs import entries
from responsory.projections.padding import padding
from responsory.projections.resource import Resource
from responsory.projections.text import DONE, dumps, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from responsory.projections.padding import Draw
    from responsory.projections.resource import Seal
    from responsory.values import Logprob

Profile: TypeAlias = Literal["openai", "openresponses"]

REASONING: dict[str, str] = {
    "openai": "response.reasoning_text",
    "openresponses": "response.reasoning",
}
NO_LOGPROBS = ',"logprobs":[]'
PLAIN_END = f"{NO_LOGPROBS}}}\n\n"
PART_EVENTS = {"output_text": "response.output_text", "refusal": "response.refusal"}
CALL_EVENTS = {
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
}
UNPADDED = frozenset({PART_EVENTS["refusal"], CALL_EVENTS["custom_tool_call"]})
"""Deltas that have no obfuscation in the Open Responses specification."""


class ResponsesStream:
    """Renders one response. ``profile`` ``openresponses`` names the reasoning events as the Open
    Responses specification does.

    As the request asked: ``obfuscation`` gives random characters to pad deltas with, ``seal`` the
    ``encrypted_content`` of reasoning from its text, and ``tokens_as_ids`` is for log
    probabilities. Token ids have no place in this stream: where a log tells them and a delta of it
    has no text, its frame has none, for numbers have no gaps."""

    def __init__(
        self,
        *,
        profile: Profile = "openai",
        obfuscation: Draw | None = None,
        seal: Seal | None = None,
        tokens_as_ids: bool = False,
    ) -> None:
        if profile not in REASONING:
            raise ValueError(f"no wire profile `{profile}`; known: {', '.join(REASONING)}")
        self.ended = False
        self._live = False
        """It began, and has not ended."""
        self._quick = False
        """Live, and a delta of text without log probabilities has nothing else."""
        self._draw = obfuscation
        self._as_ids = tokens_as_ids
        self._part_events = PART_EVENTS | {"reasoning_text": REASONING[profile]}
        self._resource = Resource(seal=seal, tokens_as_ids=tokens_as_ids)
        self._echo = ""
        self._name = ""
        """Event name of the open part or call, without ``.delta`` or ``.done``."""
        self._place: dict[str, Any] = {}
        """The keys that say where the open part or call is."""
        self._head = ""
        self._middle = ""

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order. ``choice`` is always 0: a response has one answer."""
        try:
            (event,) = events
        except ValueError:
            return self._feed(choice, events)
        if type(event) is TextDelta and not event.logprobs and not choice and self._quick:
            # Nearly every feed is this one, so it is written out.
            frame = f"{self._head}{event.seq}{self._middle}{quote(event.text)}{PLAIN_END}"
            return [frame.encode()]
        return self._feed(choice, events)

    def _feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        if choice != 0:
            raise ValueError(f"a Responses stream has no choice {choice}")
        if not self._live:
            if self.ended:
                return []
            check_begin(events)
        frames = []
        for event in events:
            frame = RENDER[type(event)](self, event)
            if frame:
                frames.append(frame.encode())
            if not self._live:
                self.ended = True
                frames.append(DONE)
                break
        return frames

    # --- deltas ---------------------------------------------------------------------------------

    def _opened(self, name: str, place: dict[str, Any]) -> None:
        self._name = name
        self._place = place
        kind = f"{name}.delta"
        self._head = f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":'
        self._middle = f',{dumps(place)[1:-1]},"delta":'

    def delta(self, event: ev.RefusalDelta | ev.ReasoningDelta | ev.InputDelta) -> str:
        return self._padded(event, quote(event.text))

    def text_delta(self, event: ev.TextDelta) -> str:
        logprobs = NO_LOGPROBS
        if event.logprobs:
            logprobs = f',"logprobs":{dumps(self._entries(event.logprobs))}'
        return self._padded(event, f"{quote(event.text)}{logprobs}")

    def _padded(self, event: ev.Event, told: str) -> str:
        padded = ""
        if self._draw is not None and self._name not in UNPADDED:
            padded = padding(f"{event.seq}{told}", self._draw)
        return f"{self._head}{event.seq}{self._middle}{told}{padded}}}\n\n"

    def _entries(self, logprobs: Sequence[Logprob]) -> list[dict[str, Any]]:
        return entries(logprobs, as_ids=self._as_ids)

    # --- the rest -------------------------------------------------------------------------------

    def _frame(self, kind: str, event: ev.Event, body: Mapping[str, Any]) -> str:
        data = dumps({"type": kind, "sequence_number": event.seq, **body})
        return f"event: {kind}\ndata: {data}\n\n"

    def _snapshot(self, kind: str, event: ev.Event) -> str:
        head = dumps(self._resource.head())[:-1]
        start = f'{{"type":"{kind}","sequence_number":{event.seq},"response":'
        return f"event: {kind}\ndata: {start}{head}{self._echo}}}}}\n\n"

    def created(self, event: ev.Created) -> str:
        """Raises ValueError, before anything changes, where the event's id or echo cannot be shown
        (a number that JSON does not have, a lone surrogate)."""
        echo = f",{dumps(event.echo)[1:-1]}" if event.echo else ""
        f"{event.id}{echo}".encode()
        self._live = True
        self._quick = self._draw is None
        self._resource.apply(event)
        self._echo = echo
        return self._snapshot("response.created", event)

    def status(self, event: ev.Event) -> str:
        self._resource.apply(event)
        return self._snapshot(f"response.{event.kind}", event)

    def ending(self, event: ev.Completed | ev.Incomplete | ev.Failed) -> str:
        self._live = self._quick = False
        return self.status(event)

    def cancelled(self, event: ev.Cancelled) -> str:
        """It has no frame."""
        self._live = self._quick = False
        self._resource.apply(event)
        return ""

    def item_added(self, event: ev.ItemAdded) -> str:
        self._resource.apply(event)
        item = self._resource.items[event.item]
        if event.type in CALL_EVENTS:
            place = {"item_id": item["id"], "output_index": event.item}
            self._opened(CALL_EVENTS[event.type], place)
        body = {"output_index": event.item, "item": item}
        return self._frame("response.output_item.added", event, body)

    def item_done(self, event: ev.ItemDone) -> str:
        self._resource.apply(event)
        body = {"output_index": event.item, "item": self._resource.items[event.item]}
        return self._frame("response.output_item.done", event, body)

    def part_added(self, event: ev.PartAdded) -> str:
        self._resource.apply(event)
        item = self._resource.items[event.item]
        place = {
            "item_id": item["id"],
            "output_index": event.item,
            "content_index": event.part,
        }
        self._opened(self._part_events[event.type], place)
        body = {**place, "part": item["content"][event.part]}
        return self._frame("response.content_part.added", event, body)

    def part_done(self, event: ev.PartDone) -> str:
        part = self._resource.items[event.item]["content"][event.part]
        return self._frame("response.content_part.done", event, {**self._place, "part": part})

    def text_done(self, event: ev.TextDone) -> str:
        self._resource.apply(event)
        body = {**self._place, "text": event.text, "logprobs": self._entries(event.logprobs)}
        return self._frame(f"{self._name}.done", event, body)

    def refusal_done(self, event: ev.RefusalDone) -> str:
        self._resource.apply(event)
        return self._frame(f"{self._name}.done", event, {**self._place, "refusal": event.text})

    def reasoning_done(self, event: ev.ReasoningDone) -> str:
        self._resource.apply(event)
        return self._frame(f"{self._name}.done", event, {**self._place, "text": event.text})

    def input_done(self, event: ev.InputDone) -> str:
        self._resource.apply(event)
        item = self._resource.items[event.item]
        if item["type"] == "function_call":
            body = {**self._place, "name": item["name"], "arguments": event.text}
        else:
            body = {**self._place, "input": event.text}
        return self._frame(f"{self._name}.done", event, body)

    def errored(self, event: ev.Errored) -> str:
        flat = {"code": event.code, "message": event.message, "param": None}
        return self._frame("error", event, {**flat, "error": {"type": "server_error", **flat}})


RENDER: dict[type[ev.Event], Callable[[ResponsesStream, Any], str]] = {
    ev.TextDelta: ResponsesStream.text_delta,
    ev.RefusalDelta: ResponsesStream.delta,
    ev.ReasoningDelta: ResponsesStream.delta,
    ev.InputDelta: ResponsesStream.delta,
    ev.Created: ResponsesStream.created,
    ev.Queued: ResponsesStream.status,
    ev.InProgress: ResponsesStream.status,
    ev.ItemAdded: ResponsesStream.item_added,
    ev.PartAdded: ResponsesStream.part_added,
    ev.TextDone: ResponsesStream.text_done,
    ev.RefusalDone: ResponsesStream.refusal_done,
    ev.ReasoningDone: ResponsesStream.reasoning_done,
    ev.PartDone: ResponsesStream.part_done,
    ev.InputDone: ResponsesStream.input_done,
    ev.ItemDone: ResponsesStream.item_done,
    ev.Completed: ResponsesStream.ending,
    ev.Incomplete: ResponsesStream.ending,
    ev.Errored: ResponsesStream.errored,
    ev.Failed: ResponsesStream.ending,
    ev.Cancelled: ResponsesStream.cancelled,
}
