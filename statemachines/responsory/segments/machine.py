"""The segmenter: pieces of raw text in, commands out.

Invariant under chunking: any split of the same text gives the same concatenated segments. Append-
only: nothing is emitted that later text could contradict. Each feed gives at most one Text, so one
engine step makes one delta.

A token belongs to the character at which it begins, and its logprob goes out with that character:
a token cut by a stop string keeps its logprob if any of its text is visible, held text holds its
logprobs, and a token without text of its own (one inside a character) rides on the next text. A
token after which no text comes at all was never visible: its logprob is not emitted.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from responsory.commands import CallClosed, CallInput, CallOpened, Reasoning, Refusal, Text
from responsory.segments.formats import PLAIN, Spec
from responsory.segments.pieces import Aligner, Piece
from responsory.segments.stops import StopMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from responsory.values import Logprob

Segment: TypeAlias = Text | Refusal | Reasoning | CallOpened | CallInput | CallClosed


class Segmenter:
    """One response's raw text, read by the rules of ``spec``.

    ``stop``: stop strings, matched in the answer; ``include_stop`` leaves the matched one in it.
    After a hit everything further is ignored, and the engine's request should be aborted.

    ``output_tokens`` counts ids, up to and including the token that completes a match; where a
    piece of several ids does not show their borders (by one logprob per id), all its ids count.
    """

    __slots__ = (
        "_aligner",
        "_matcher",
        "_unmarked",
        "_waiting",
        "output_tokens",
        "reasoning_tokens",
    )

    def __init__(
        self, spec: Spec = PLAIN, *, stop: Sequence[str] = (), include_stop: bool = False
    ) -> None:
        self._unmarked = spec.unmarked
        self.output_tokens = 0
        self.reasoning_tokens = 0
        self._matcher = StopMatcher(stop, include=include_stop)
        self._aligner = Aligner()
        self._waiting: deque[tuple[int, Logprob]] = deque()
        """(first character, logprob) of tokens whose first character is not out yet."""

    @property
    def stop(self) -> str | None:
        """The stop string that was matched."""
        return self._matcher.hit

    def feed(self, pieces: Iterable[Piece]) -> list[Segment]:
        """The segments that one engine step makes certain."""
        return self._segments("".join([self._take(piece) for piece in pieces]))

    def finish(self) -> list[Segment]:
        """The segments of what was held: the text has ended."""
        segments = self._segments(self._matcher.flush())
        self._waiting.clear()
        return segments

    def _take(self, piece: Piece) -> str:
        """Match and count one piece; the text that it makes visible."""
        matcher = self._matcher
        if matcher.hit_end >= 0:
            return ""
        if not piece.logprobs:
            self.output_tokens += len(piece.ids)
            return matcher.feed(piece.text)
        origin = matcher.end
        starts = [origin + at for at in self._aligner.starts(piece.text, piece.logprobs)]
        self._waiting.extend(zip(starts, piece.logprobs, strict=True))
        visible = matcher.feed(piece.text)
        if matcher.hit_end >= 0 and len(starts) == len(piece.ids):
            self.output_tokens += sum(start < matcher.hit_end for start in starts)
        else:
            self.output_tokens += len(piece.ids)
        return visible

    def _segments(self, visible: str) -> list[Segment]:
        if not visible:
            return []
        if not self._waiting:
            return [self._unmarked(visible)]
        logprobs = []
        while self._waiting and self._waiting[0][0] < self._matcher.released:
            logprobs.append(self._waiting.popleft()[1])
        return [self._unmarked(visible, tuple(logprobs))]
