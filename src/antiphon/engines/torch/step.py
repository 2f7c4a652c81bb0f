"""One step of the engine: what is read in it, and what came of it (pure Python, no torch)."""

from __future__ import annotations

from array import array

import attrs

from antiphon.engines.port import NO_STOP_ID, Finish
from antiphon.engines.torch.pages import PageTable
from antiphon.engines.torch.sequence import Sequence


@attrs.define(eq=False)
class Chunk:
    """``count`` tokens of a sequence to read in this step, from ``start`` on.

    The last of them may be one that an earlier step draws and that is not known yet: then
    ``start`` is ``len(sequence.ids)``, and only the device knows the id.
    """

    sequence: Sequence
    start: int
    count: int
    draws: bool = attrs.field()
    """Whether the step gives the sequence a new token."""
    table: PageTable = attrs.field()
    """The pages it is written to. A sequence that lost its pages since has another table."""

    @draws.default
    def _at_the_end(self) -> bool:
        sequence = self.sequence
        return self.start + self.count == sequence.length and sequence.max_tokens > 0

    @table.default
    def _its_own(self) -> PageTable:
        return self.sequence.table

    @property
    def end(self) -> int:
        """The position behind its last token: that of the token it draws."""
        return self.start + self.count

    @property
    def scored(self) -> range:
        """Its positions that predict a prompt token whose logprob is wanted and not yet known.

        They are read in order and never skipped, so the first of them is the next to score.
        """
        scores = self.sequence.scores
        if scores is None:
            return range(0)
        last = len(self.sequence.request.prompt) - 1  # it predicts the first token of the output
        return range(max(self.start, scores.done), min(self.end, last))


@attrs.define(eq=False)
class Step:
    """Chunks that run together. Steps are numbered from 1, in the order of their launch."""

    number: int
    chunks: list[Chunk]

    @property
    def drawing(self) -> list[Sequence]:
        """The sequences that get a token, in the order of their chunks."""
        return [chunk.sequence for chunk in self.chunks if chunk.draws]

    @property
    def tokens(self) -> int:
        """Tokens read in it."""
        return sum(chunk.count for chunk in self.chunks)


@attrs.define(eq=False)
class Booked:
    """What a step did: columns over the R sequences with a new token or an end, and T tokens."""

    sequence: list[Sequence] = attrs.field(factory=list)
    """[R]"""
    n_new: array[int] = attrs.field(factory=lambda: array("H"))
    """u16[R]: 1, or 0 where there is only an end."""
    finish: array[int] = attrs.field(factory=lambda: array("B"))
    """u8[R]: ``Finish``."""
    stop_id: array[int] = attrs.field(factory=lambda: array("i"))
    """i32[R]: the id that ended the sequence, else ``NO_STOP_ID``."""
    token: array[int] = attrs.field(factory=lambda: array("I"))
    """u32[T]: the new tokens of the output, row after row."""
    drawn: list[int] = attrs.field(factory=list)
    """[T]: which of the step's draws each token is."""
    refused: dict[int, int] = attrs.field(factory=dict)
    """row -> which draw was refused, for rows that end in an error."""

    def end(self, sequence: Sequence, finish: Finish, stop_id: int = NO_STOP_ID) -> None:
        """A row without a token: the sequence is over."""
        self.sequence.append(sequence)
        self.n_new.append(0)
        self.finish.append(finish)
        self.stop_id.append(stop_id)

    def extend(self, sequence: Sequence, token: int, draw: int) -> None:
        """Append a drawn id to the sequence, or end it on that id."""
        if token in sequence.stopping_ids:
            self.end(sequence, Finish.STOP, token)
            return
        sequence.ids.append(token)
        self.sequence.append(sequence)
        self.n_new.append(1)
        self.token.append(token)
        self.drawn.append(draw)
        self.stop_id.append(NO_STOP_ID)
        self.finish.append(_finish(sequence))


def _finish(sequence: Sequence) -> Finish:
    """Whether it ends with its latest token."""
    if sequence.grammar is not None and sequence.grammar.finished:
        return Finish.STOP
    return Finish.LENGTH if sequence.drawn >= sequence.max_tokens else Finish.NONE
