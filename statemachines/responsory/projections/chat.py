"""The Chat Completions stream.

A delta carries content, refusal, reasoning or a tool call, never two of them. Role chunks for all
choices come first, in index order; each choice ends with one finish chunk whose delta is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.projections.choices import Choices, check_begin, finish_reason, prompt_ids
from responsory.projections.logprobs import chat_logprobs
from responsory.projections.reasoning import ReasoningField, names_of, reasoning_keys
from responsory.projections.text import dumps, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from responsory.projections.padding import Draw
    from responsory.values import Tokens

OPEN = ',"finish_reason":null'
"""The finish reason of a choice that goes on."""


class ChatStream:
    """Renders the chunks of one call, as the request asked for them.

    ``logprobs``, ``tokens_as_ids`` (of log probabilities), ``token_ids``: whether it did.
    ``continuous_usage``: the tokens of each prompt, for counts on every chunk. ``reasoning_field``:
    the name of reasoning text. ``obfuscation``: gives random characters to pad chunks with.
    """

    def __init__(
        self,
        *,
        choices: int = 1,
        per_prompt: int = 1,
        include_usage: bool = False,
        logprobs: bool = False,
        continuous_usage: Sequence[int] | None = None,
        token_ids: bool = False,
        tokens_as_ids: bool = False,
        reasoning_field: ReasoningField = "reasoning_content",
        obfuscation: Draw | None = None,
    ) -> None:
        self._call = Choices(
            choices,
            per_prompt=per_prompt,
            include_usage=include_usage,
            continuous_usage=continuous_usage,
            token_ids=token_ids,
            obfuscation=obfuscation,
            object_name="chat.completion.chunk",
            public_id=ids.chat_id,
        )
        self._shape = _Shape(names_of(reasoning_field), logprobs=logprobs, as_ids=tokens_as_ids)
        self._choices: dict[int, _Choice] = {}

    @property
    def ended(self) -> bool:
        return self._call.ended

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order, for these events of one choice."""
        state = self._choices.get(choice)
        if state is None:
            self._call.check(choice)
        elif len(events) == 1 and (around := state.plain.get(type(events[0]))):
            # Nearly every feed is a delta, so this is written out.
            delta: Any = events[0]
            if not delta.text or self._call.ended:
                return []
            return [f"{around[0]}{quote(delta.text)}{around[1]}".encode()]
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
        head = self._call.head(event)
        first = not self._choices
        state = _Choice(self._call, self._shape, event.id, choice, head)
        self._choices[choice] = state
        if not first:
            return state, []
        role = f'{{"role":"assistant","content":"",{self._shape.none}}}'
        rest = f'"delta":{role}{self._shape.no_logprobs}{OPEN}{self._call.ids(())}}}]'
        prompt = f',"prompt_token_ids":{dumps(prompt_ids(event))}' if self._call.token_ids else ""
        return state, [
            f'{head}{{"index":{index},{rest}{self._call.chunk_end("", *keys)}'.encode()
            for index, keys in enumerate([(prompt,), *[()] * (self._call.count - 1)])
        ]

    def _ended(self, choice: int, event: ev.Event) -> list[bytes]:
        if isinstance(event, ev.Completed | ev.Incomplete):
            finish = self._choices[choice].finish(event)
            return [finish.encode(), *self._call.end(choice, event)]
        if isinstance(event, ev.Cancelled):
            return self._call.end(choice, event)
        return self._call.fail(event) if isinstance(event, ev.Failed) else []


class _Shape:
    """What the chunks of a call have in common. ``none``: the keys of a delta without reasoning;
    ``no_logprobs``: the key as it is on every chunk without content, where it was asked for."""

    __slots__ = ("as_ids", "logprobs", "names", "no_logprobs", "none")

    def __init__(self, names: tuple[str, ...], *, logprobs: bool, as_ids: bool) -> None:
        self.names = names
        self.none = reasoning_keys(names, "null")
        self.logprobs = logprobs
        self.as_ids = as_ids
        self.no_logprobs = ',"logprobs":null' if logprobs else ""


class _Choice:
    """One choice: what its chunks begin and end with, and its calls."""

    __slots__ = ("_call", "_head", "_id", "_index", "_key", "_shape", "calls", "plain")

    def __init__(self, call: Choices, shape: _Shape, tail: str, index: int, head: str) -> None:
        self._call = call
        self._shape = shape
        self._id = tail
        self._index = index
        self._head = f'{head}{{"index":{index},"delta":'
        self.plain: dict[type[ev.Event], tuple[str, str]] = {}
        """What is around the text of a chunk, where nothing was asked for that it tells beside."""
        if call.plain and not shape.logprobs:
            end = f"{OPEN}}}]{call.plain_end}"
            self.plain[ev.TextDelta] = (f'{self._head}{{"content":', f",{shape.none}}}{end}")
            if len(shape.names) == 1:
                self.plain[ev.ReasoningDelta] = (f'{self._head}{{"{shape.names[0]}":', f"}}{end}")
        self.calls = 0
        self._key = ""
        """``function`` or ``custom``, of the open call."""

    def finish(self, event: ev.Completed | ev.Incomplete) -> str:
        reason = self.finish_reason(event)
        self._call.finished(self._index, event)
        end = f',"finish_reason":"{reason}","stop_reason":{dumps(event.stop)}'
        return self._chunk(f"{{{self._shape.none}}}{self._shape.no_logprobs}{end}", event.ids)

    def finish_reason(self, event: ev.Completed | ev.Incomplete) -> str:
        reason = finish_reason(event)
        return "tool_calls" if reason == "stop" and self.calls else reason

    def text(self, event: ev.TextDelta) -> str:
        """A chunk of content; nothing for what an event tells that was not asked for."""
        logprobs = event.logprobs if self._shape.logprobs else ()
        if not event.text and not logprobs:
            return self._told("", event.tokens)
        delta = f'{{"content":{quote(event.text)},{self._shape.none}}}'
        shown = ""
        if self._shape.logprobs:
            shown = f',"logprobs":{dumps(chat_logprobs(logprobs, as_ids=self._shape.as_ids))}'
        return self._goes_on(f"{delta}{shown}", event.tokens)

    def refusal(self, event: ev.RefusalDelta) -> str:
        return self._told(event.text and f'"refusal":{quote(event.text)},', event.tokens)

    def reasoning(self, event: ev.ReasoningDelta) -> str:
        if not event.text:
            return self._told("", event.tokens)
        delta = reasoning_keys(self._shape.names, quote(event.text))
        return self._goes_on(f"{{{delta}}}{self._shape.no_logprobs}", event.tokens)

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
        return self._told(f'"tool_calls":[{dumps(call)}],', None)

    def input(self, event: ev.InputDelta) -> str:
        field = "arguments" if self._key == "function" else "input"
        piece = f'"{self._key}":{{"{field}":{quote(event.text)}}}'
        call = f'"tool_calls":[{{"index":{self.calls - 1},{piece}}}],'
        return self._told(event.text and call, event.tokens)

    def _told(self, carried: str, tokens: Tokens | None) -> str:
        """A chunk without content. Where nothing is ``carried``, it tells token ids alone; nothing
        if these were not asked for."""
        if not carried and not (self._call.token_ids and tokens and tokens.ids):
            self._call.take(self._index, tokens)
            return ""
        return self._goes_on(f"{{{carried}{self._shape.none}}}{self._shape.no_logprobs}", tokens)

    def _goes_on(self, delta: str, tokens: Tokens | None) -> str:
        self._call.take(self._index, tokens)
        return self._chunk(f"{delta}{OPEN}", () if tokens is None else tokens.ids)

    def _chunk(self, choice: str, token_ids: Sequence[int]) -> str:
        rest = f"{choice}{self._call.ids(token_ids)}}}]"
        return f"{self._head}{rest}{self._call.chunk_end(rest)}"


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
