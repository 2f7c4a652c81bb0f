"""The Completions stream.

The shape has one text and no channels: text and refusals of a choice are its text, in order;
reasoning and tool calls have no place in it. ``finish_reason`` rides on the last text chunk when
the same feed ended the choice, and on an empty one otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.projections.choices import Choices, check_begin, finish_reason
from responsory.projections.logprobs import completion_logprobs
from responsory.projections.offsets import Offsets
from responsory.projections.text import dumps, quote

if TYPE_CHECKING:
    from collections.abc import Sequence


class CompletionsStream:
    """Renders the chunks of one call. ``logprobs``: whether the request asked for them."""

    def __init__(
        self,
        *,
        choices: int = 1,
        per_prompt: int = 1,
        include_usage: bool = False,
        logprobs: bool = False,
    ) -> None:
        self._call = Choices(
            choices,
            per_prompt=per_prompt,
            include_usage=include_usage,
            object_name="text_completion",
            public_id=ids.completion_id,
        )
        self._logprobs = logprobs
        self._choices: dict[int, _Choice] = {}

    @property
    def ended(self) -> bool:
        return self._call.ended

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order, for these events of one choice."""
        self._call.check(choice)
        frames: list[bytes] = []
        if self.ended:
            return frames
        if choice not in self._choices:
            check_begin(events)
        # The last text is held to the end of this call, in case the finish reason rides on it.
        last: ev.TextDelta | ev.RefusalDelta | None = None
        for event in events:
            if self._call.ended:
                break
            if isinstance(event, (ev.TextDelta, ev.RefusalDelta)):
                if not event.text and not self._logprobs:
                    continue  # logprobs that were not asked for
                if last is not None:
                    frames.append(self._chunk(choice, last))
                last = event
            elif isinstance(event, ev.Created):
                head = f'{self._call.head(event)}{{"index":{choice},"text":'
                self._choices[choice] = _Choice(head)
            elif isinstance(event, ev.Completed | ev.Incomplete):
                frames.append(self._chunk(choice, last, end=event))
                last = None
                frames += self._call.end(choice, event)
            elif isinstance(event, ev.Failed | ev.Cancelled):
                if last is not None:
                    frames.append(self._chunk(choice, last))
                    last = None
                frames += (
                    self._call.fail(event)
                    if isinstance(event, ev.Failed)
                    else self._call.end(choice, event)
                )
        if last is not None:
            frames.append(self._chunk(choice, last))
        return frames

    def _chunk(
        self,
        choice: int,
        delta: ev.TextDelta | ev.RefusalDelta | None,
        end: ev.Completed | ev.Incomplete | None = None,
    ) -> bytes:
        state = self._choices[choice]
        text = "" if delta is None else delta.text
        shown = "null"
        if self._logprobs and delta is not None:
            shown = dumps(state.logprobs(delta))
        finish = "null"
        if end is not None:
            finish = f'"{finish_reason(end)}","stop_reason":{dumps(end.stop)}'
        rest = f'"logprobs":{shown},"finish_reason":{finish}}}]{self._call.chunk_end}'
        return f"{state.head}{quote(text)},{rest}".encode()


class _Choice:
    """One choice: the start of its chunks and the place of its next token."""

    __slots__ = ("_offsets", "head")

    def __init__(self, head: str) -> None:
        self.head = head
        self._offsets = Offsets()

    def logprobs(self, delta: ev.TextDelta | ev.RefusalDelta) -> dict[str, Any]:
        """The ``logprobs`` object of the chunk with this delta; a refusal has no entries."""
        if isinstance(delta, ev.RefusalDelta):
            self._offsets.skip(delta.text)
            return completion_logprobs((), [])
        starts = self._offsets.take(delta.text, delta.logprobs)
        return completion_logprobs(delta.logprobs, starts)
