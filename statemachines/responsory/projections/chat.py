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


def null_logprobs(asked: bool) -> str:
    """The key as it is on every chunk without content, when the request asked for logprobs."""
    return ',"logprobs":null' if asked else ""


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
        self._null = null_logprobs(logprobs)
        self._open_end = f',"finish_reason":null}}]{self._call.chunk_end}'
        self._choices: dict[int, _Choice] = {}

    @property
    def ended(self) -> bool:
        return self._call.ended

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order, for these events of one choice."""
        self._call.check(choice)
        if choice not in self._choices:
            check_begin(events)
        frames: list[bytes] = []
        for event in events:
            if self._call.ended:
                break
            render = DELTAS.get(type(event))
            if render is not None:
                state = self._choices[choice]
                delta = render(state, event)
                if delta:
                    frames.append(f"{state.head}{delta}{self._open_end}".encode())
            elif isinstance(event, ev.Created):
                frames += self._created(choice, event)
            elif isinstance(event, ev.Completed | ev.Incomplete):
                frames.append(self._finish(self._choices[choice], event))
                frames += self._call.end(choice, event)
            elif isinstance(event, ev.Cancelled):
                frames += self._call.end(choice, event)
            elif isinstance(event, ev.Failed):
                frames += self._call.fail(event)
        return frames

    def _created(self, choice: int, event: ev.Created) -> list[bytes]:
        head = self._call.head(event)
        first = not self._choices
        self._choices[choice] = _Choice(event.id, choice, head, self._logprobs)
        if not first:
            return []
        end = f"{self._null}{self._open_end}"
        return [
            f'{head}{{"index":{index},"delta":{ROLE}{end}'.encode()
            for index in range(self._call.count)
        ]

    def _finish(self, state: _Choice, event: ev.Completed | ev.Incomplete) -> bytes:
        reason = state.finish_reason(event)
        end = f',"finish_reason":"{reason}","stop_reason":{dumps(event.stop)}}}]'
        return f"{state.head}{EMPTY}{self._null}{end}{self._call.chunk_end}".encode()


class _Choice:
    """One choice: the start of its chunks and its calls."""

    __slots__ = ("_id", "_index", "_key", "_logprobs", "_null", "calls", "head")

    def __init__(self, tail: str, index: int, head: str, logprobs: bool) -> None:
        self._id = tail
        self._index = index
        self.head = f'{head}{{"index":{index},"delta":'
        self._logprobs = logprobs
        self._null = null_logprobs(logprobs)
        self.calls = 0
        self._key = ""
        """``function`` or ``custom``, of the open call."""

    def finish_reason(self, event: ev.Completed | ev.Incomplete) -> str:
        reason = finish_reason(event)
        return "tool_calls" if reason == "stop" and self.calls else reason

    def text(self, event: ev.TextDelta) -> str:
        logprobs = ""
        if self._logprobs:
            logprobs = f',"logprobs":{dumps(chat_logprobs(event.logprobs))}'
        return f'{{"content":{quote(event.text)},"reasoning_content":null}}{logprobs}'

    def refusal(self, event: ev.RefusalDelta) -> str:
        return f'{{"refusal":{quote(event.text)},"reasoning_content":null}}{self._null}'

    def reasoning(self, event: ev.ReasoningDelta) -> str:
        return f'{{"reasoning_content":{quote(event.text)}}}{self._null}'

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
        return f'{{"tool_calls":[{call}],"reasoning_content":null}}{self._null}'


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


DELTAS: dict[type[ev.Event], Callable[[_Choice, Any], str]] = {
    ev.TextDelta: _Choice.text,
    ev.RefusalDelta: _Choice.refusal,
    ev.ReasoningDelta: _Choice.reasoning,
    ev.ItemAdded: _Choice.item,
    ev.InputDelta: _Choice.input,
}
