"""What one feed of the segmenter shows, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Refusal, Text
from responsory.values import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.segments.formats.spec import Channel
    from responsory.values import Logprob, Phase

Segment: TypeAlias = Text | Refusal | Reasoning | CallOpened | CallInput | CallClosed
"""The commands that a segmenter may give; the families here give no Refusal."""


class Shown:
    """The segments of one feed: a new one for each change of channel."""

    __slots__ = ("_channel", "_ids", "_logprobs", "_output", "_phase", "_segments", "_text")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._channel: Channel | None = None
        self._phase: Phase | None = None
        self._text: list[str] = []
        self._logprobs: list[Logprob] = []
        self._ids: list[int] = []
        self._output: int | None = None

    def add(
        self,
        channel: Channel,
        text: str,
        tokens: Tokens | None,
        logprobs: Iterable[Logprob] = (),
        phase: Phase | None = None,
    ) -> None:
        """Text of the channel. ``tokens``: what it tells of its tokens, if it tells that."""
        if channel is not self._channel or phase != self._phase:
            self._close()
            self._channel, self._phase = channel, phase
        self._text.append(text)
        self._logprobs += logprobs
        if tokens is not None:
            self._ids += tokens.ids
            self._output = tokens.output

    def add_border(self, command: CallOpened | CallClosed) -> None:
        """A call opens or closes."""
        self._close()
        self._segments.append(command)

    def segments(self) -> list[Segment]:
        """All of them, in order."""
        self._close()
        return self._segments

    def _close(self) -> None:
        channel = self._channel
        if channel is None:
            return
        text, output = "".join(self._text), self._output
        tokens = None if output is None else Tokens(tuple(self._ids), output)
        if channel is Text:
            self._segments.append(Text(text, tuple(self._logprobs), self._phase, tokens))
        elif channel is Reasoning:
            self._segments.append(Reasoning(text, tokens))
        else:
            self._segments.append(CallInput(text, tokens))
        self._channel, self._text, self._logprobs, self._ids = None, [], [], []
