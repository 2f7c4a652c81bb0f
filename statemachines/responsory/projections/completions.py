"""The Completions stream.

The shape has one text and no channels: text and refusals of a choice are its text, in order;
reasoning and tool calls have no place in it, and only the ids of their tokens are told, with the
next chunk. ``finish_reason`` rides on the last text chunk when the same feed ended the choice, and
on an empty one otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory import events as ev
from responsory import ids
from responsory.events import TextDelta
from responsory.projections.choices import Choices, check_begin, finish_reason, prompt_ids
from responsory.projections.logprobs import completion_logprobs
from responsory.projections.offsets import Offsets
from responsory.projections.text import dumps, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responsory.projections.padding import Draw
    from responsory.values import Tokens

Visible = ev.TextDelta | ev.RefusalDelta


class CompletionsStream:
    """Renders the chunks of one call, as the request asked for them: the same of its settings mean
    the same as those of ``ChatStream``."""

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
        obfuscation: Draw | None = None,
    ) -> None:
        self._call = Choices(
            choices,
            per_prompt=per_prompt,
            include_usage=include_usage,
            continuous_usage=continuous_usage,
            token_ids=token_ids,
            obfuscation=obfuscation,
            object_name="text_completion",
            public_id=ids.completion_id,
        )
        self._logprobs = logprobs
        self._as_ids = tokens_as_ids
        self._choices: dict[int, _Choice] = {}

    @property
    def ended(self) -> bool:
        return self._call.ended

    def feed(self, choice: int, events: Sequence[ev.Event]) -> list[bytes]:
        """Whole frames, in order, for these events of one choice."""
        if len(events) == 1 and type(event := events[0]) is TextDelta and not self._call.ended:
            # Nearly every feed is this one, so it is written out.
            state = self._choices.get(choice)
            if state is not None and state.plain and event.text:
                return [f"{state.head}{quote(event.text)}{state.plain_end}".encode()]
        self._call.check(choice)
        frames: list[bytes] = []
        if self.ended:
            return frames
        if choice not in self._choices:
            check_begin(events)
        # The last text is held to the end of this call, in case the finish reason rides on it.
        last: Visible | None = None
        for event in events:
            if self._call.ended:
                break
            if isinstance(event, ev.Delta):
                if isinstance(event, Visible) and self._shows(event):
                    if last is not None:
                        frames.append(self._chunk(choice, last))
                    last = event
                if event.tokens is not None:
                    self._choices[choice].wait(event.tokens)
            elif isinstance(event, ev.Created):
                self._choices[choice] = self._created(choice, event)
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

    def _shows(self, event: Visible) -> bool:
        """Whether it carries anything that was asked for."""
        if event.text or (self._logprobs and isinstance(event, ev.TextDelta) and event.logprobs):
            return True
        return self._call.token_ids and event.tokens is not None and event.tokens.ids != ()

    def _created(self, choice: int, event: ev.Created) -> _Choice:
        head = f'{self._call.head(event)}{{"index":{choice},"text":'
        prompt = f',"prompt_token_ids":{dumps(prompt_ids(event))}' if self._call.token_ids else ""
        plain = self._call.plain and not self._logprobs
        return _Choice(choice, self._call, head, prompt, plain=plain)

    def _chunk(
        self, choice: int, delta: Visible | None, end: ev.Completed | ev.Incomplete | None = None
    ) -> bytes:
        state = self._choices[choice]
        text = "" if delta is None else delta.text
        shown = "null"
        if self._logprobs and delta is not None:
            arrays = state.logprobs(delta, as_ids=self._as_ids)
            if text or arrays["tokens"]:  # a chunk that tells token ids alone has none
                shown = dumps(arrays)
        finish = "null"
        if end is not None:
            finish = f'"{finish_reason(end)}","stop_reason":{dumps(end.stop)}'
        rest = f'{quote(text)},"logprobs":{shown},"finish_reason":{finish}'
        rest += f"{state.told(end)}}}]"
        return f"{state.head}{rest}{self._call.chunk_end(rest)}".encode()


class _Choice:
    """One choice: the start of its chunks, the place of its next token, and the token ids that no
    chunk has told."""

    __slots__ = ("_call", "_index", "_offsets", "_prompt", "_untold", "head", "plain", "plain_end")

    def __init__(self, index: int, call: Choices, head: str, prompt: str, *, plain: bool) -> None:
        self.head = head
        self.plain = plain
        """A chunk in the midst is ``head``, its text, ``plain_end``."""
        self.plain_end = f',"logprobs":null,"finish_reason":null}}]{call.plain_end}'
        self._index = index
        self._call = call
        self._offsets = Offsets()
        self._prompt = prompt
        """The ids of the prompt, a key of the first chunk."""
        self._untold: list[int] = []

    def logprobs(self, delta: Visible, *, as_ids: bool) -> dict[str, Any]:
        """The ``logprobs`` object of the chunk with this delta; a refusal has no entries."""
        if isinstance(delta, ev.RefusalDelta):
            self._offsets.skip(delta.text)
            return completion_logprobs((), [])
        starts = self._offsets.take(delta.text, delta.logprobs)
        return completion_logprobs(delta.logprobs, starts, as_ids=as_ids)

    def wait(self, tokens: Tokens) -> None:
        """The next chunk is to tell them, that of their own text or another."""
        self._call.take(self._index, tokens)
        self._untold += tokens.ids

    def told(self, end: ev.Completed | ev.Incomplete | None) -> str:
        """The keys at the end of a choice's next chunk."""
        if end is not None:
            self._call.finished(self._index, end)
            self._untold += end.ids
        keys = f"{self._prompt}{self._call.ids(self._untold)}"
        self._prompt, self._untold = "", []
        return keys
