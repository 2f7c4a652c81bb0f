"""What one feed of the segmenter shows, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Refusal, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from responsory.segments.formats.spec import Channel
    from responsory.values import Logprob

Segment: TypeAlias = Text | Refusal | Reasoning | CallOpened | CallInput | CallClosed
"""The commands that a segmenter may give; the families here give no Refusal."""


class Shown:
    """The segments of one feed: a new one for each change of channel."""

    __slots__ = ("_channel", "_logprobs", "_segments", "_text")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._channel: Channel | None = None
        self._text: list[str] = []
        self._logprobs: list[Logprob] = []

    def add(self, channel: Channel, text: str, logprobs: Iterable[Logprob] = ()) -> None:
        if channel is not self._channel:
            self._close()
            self._channel = channel
        self._text.append(text)
        self._logprobs += logprobs

    def add_border(self, command: CallOpened | CallClosed) -> None:
        """A call opens or closes."""
        self._close()
        self._segments.append(command)

    def segments(self) -> list[Segment]:
        self._close()
        return self._segments

    def _close(self) -> None:
        if self._channel is Text:
            self._segments.append(Text("".join(self._text), tuple(self._logprobs)))
        elif self._channel is Reasoning:
            self._segments.append(Reasoning("".join(self._text)))
        elif self._channel is CallInput:
            self._segments.append(CallInput("".join(self._text)))
        self._channel, self._text, self._logprobs = None, [], []
