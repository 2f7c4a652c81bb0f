"""The Chat Completions stream.

A delta carries content, refusal, reasoning or a tool call, never two of them. Role chunks for all
choices come first, in index order; each choice ends with one finish chunk whose delta is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.projections.choices import Choices, check_begin, finish_reason
from responsory.projections.logprobs import chat_logprobs
from responsory.projections.text import dumps, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROLE = '{"role":"assistant","content":"","reasoning_content":null}'
EMPTY = '{"reasoning_content":null}'
OPEN = ',"finish_reason":null}]'
"""The end of a choice that goes on."""


class ChatStream:
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
            object_name="chat.completion.chunk",
            public_id=ids.chat_id,
        )
        self._logprobs = logprobs
        self._choices: dict[int, _Choice] = {}

    @property
    def ended(self) -> bool:
        return self._call.ended

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order, for these events of one choice."""
        state = self._choices.get(choice)
        if state is None:
            self._call.check(choice)
        frames: list[bytes] = []
        if self._call.ended:
            return frames
        if state is None:
            check_begin(events)
        for event in events:
            kind = type(event)
            if state is not None and kind in CHUNKS:
                frame = CHUNKS[kind](state, event)
                if frame:
                    frames.append(frame.encode())
            elif isinstance(event, ev.Created):
                state, roles = self._created(choice, event)
                frames += roles
            elif kind in ev.ENDINGS:
                frames += self._ended(choice, event)
                break
        return frames

    def _created(self, choice: int, event: ev.Created) -> tuple[_Choice, list[bytes]]:
        """The choice, and the role chunks of all choices if it is the first one."""
        head, end = self._call.head(event), self._call.chunk_end
        first = not self._choices
        state = _Choice(event.id, choice, head, end, logprobs=self._logprobs)
        self._choices[choice] = state
        if not first:
            return state, []
        rest = f'"delta":{ROLE}{state.null}{OPEN}{end}'
        return state, [
            f'{head}{{"index":{index},{rest}'.encode() for index in range(self._call.count)
        ]

    def _ended(self, choice: int, event: ev.Event) -> list[bytes]:
        if isinstance(event, ev.Completed | ev.Incomplete):
            finish = self._choices[choice].finish(event)
            return [finish.encode(), *self._call.end(choice, event)]
        if isinstance(event, ev.Cancelled):
            return self._call.end(choice, event)
        return self._call.fail(event) if isinstance(event, ev.Failed) else []


class _Choice:
    """One choice: what its chunks begin and end with, and its calls."""

    __slots__ = ("_content", "_content_end", "_end", "_head", "_id", "_index", "_key", "_logprobs",
                 "calls", "null")  # fmt: skip

    def __init__(self, tail: str, index: int, head: str, end: str, *, logprobs: bool) -> None:
        self._id = tail
        self._index = index
        self._logprobs = logprobs
        self.null = ',"logprobs":null' if logprobs else ""
        """The key as it is on every chunk without content, when the request asked for logprobs."""
        self._head = f'{head}{{"index":{index},"delta":'
        self._end = end
        self._content = f'{self._head}{{"content":'
        self._content_end = f',"reasoning_content":null}}{OPEN}{end}'
        self.calls = 0
        self._key = ""
        """``function`` or ``custom``, of the open call."""

    def finish(self, event: ev.Completed | ev.Incomplete) -> str:
        reason = self.finish_reason(event)
        end = f',"finish_reason":"{reason}","stop_reason":{dumps(event.stop)}}}]'
        return f"{self._head}{EMPTY}{self.null}{end}{self._end}"

    def finish_reason(self, event: ev.Completed | ev.Incomplete) -> str:
        reason = finish_reason(event)
        return "tool_calls" if reason == "stop" and self.calls else reason

    def text(self, event: ev.TextDelta) -> str:
        """A chunk of content; nothing for logprobs without text that were not asked for."""
        if not self._logprobs:
            if not event.text:
                return ""
            return f"{self._content}{quote(event.text)}{self._content_end}"
        logprobs = f',"logprobs":{dumps(chat_logprobs(event.logprobs))}'
        delta = f'{{"content":{quote(event.text)},"reasoning_content":null}}'
        return f"{self._head}{delta}{logprobs}{OPEN}{self._end}"

    def refusal(self, event: ev.RefusalDelta) -> str:
        return self._chunk(f'{{"refusal":{quote(event.text)},"reasoning_content":null}}')

    def reasoning(self, event: ev.ReasoningDelta) -> str:
        return self._chunk(f'{{"reasoning_content":{quote(event.text)}}}')

    def item(self, event: ev.ItemAdded) -> str:
        """A call's first fragment; nothing for other items."""
        if event.name is None:
            return ""
        call = {
            "index": self.calls,
            **chat_call(event, self._id, self._index, self.calls, ""),
        }
        self._key = call["type"]
        self.calls += 1
        return self._call(dumps(call))

    def input(self, event: ev.InputDelta) -> str:
        field = "arguments" if self._key == "function" else "input"
        piece = f'"{self._key}":{{"{field}":{quote(event.text)}}}'
        return self._call(f'{{"index":{self.calls - 1},{piece}}}')

    def _call(self, call: str) -> str:
        return self._chunk(f'{{"tool_calls":[{call}],"reasoning_content":null}}')

    def _chunk(self, delta: str) -> str:
        return f"{self._head}{delta}{self.null}{OPEN}{self._end}"


def chat_call(event: ev.ItemAdded, tail: str, choice: int, call: int, text: str) -> dict[str, Any]:
    """A tool call of chat with ``text`` as its arguments or input."""
    key, field = ("function", "arguments")
    if event.type == "custom_tool_call":
        key, field = ("custom", "input")
    return {
        "id": event.call_id or ids.chat_call_id(tail, choice, call),
        "type": key,
        key: {"name": event.name, field: text},
    }


CHUNKS: dict[type[ev.Event], Callable[[_Choice, Any], str]] = {
    ev.TextDelta: _Choice.text,
    ev.RefusalDelta: _Choice.refusal,
    ev.ReasoningDelta: _Choice.reasoning,
    ev.ItemAdded: _Choice.item,
    ev.InputDelta: _Choice.input,
}
