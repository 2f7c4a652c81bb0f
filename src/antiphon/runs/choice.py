"""One choice of a run: the tokens of one engine request become events of one log."""

from __future__ import annotations

import logging
import math
from typing import Literal

from antiphon.engines.port import NO_STOP_ID, NOT_REPORTED, PAD_ID, StepFrame
from antiphon.engines.port import Finish as EngineFinish
from antiphon.prompting.detokenizer import Detokenizer
from responsory import EventLog, Logprob, Response, TopLogprob, Usage
from responsory.commands import Accept, Cancel, Command, Fail, Finish
from responsory.events import Event
from responsory.segments import Piece, Segmenter

log = logging.getLogger(__name__)

FinishReason = Literal["stop", "length", "content_filter"]

_REASONS: dict[int, FinishReason] = {
    EngineFinish.STOP: "stop",
    EngineFinish.LENGTH: "length",
    EngineFinish.CONTENT_FILTER: "content_filter",
}


class Choice:
    """Machine, log, segmenter and detokenizer of one sequence. No I/O, no clock."""

    def __init__(
        self,
        *,
        key: int,
        index: int,
        prompt_tokens: int,
        detokenizer: Detokenizer | None,
        segmenter: Segmenter,
        logprobs: bool,
        stop_ids: frozenset[int],
    ) -> None:
        self.key = key
        self.index = index
        self.accepted = False
        self.log = EventLog()
        self._fresh: list[Event] = []
        self._machine = Response()
        self._detokenizer = detokenizer
        self._segmenter = segmenter
        self._logprobs = logprobs
        self._stop_ids = stop_ids
        self._prompt_tokens = prompt_tokens
        self._cached = 0
        self._stop_id_tokens = 0

    @property
    def ended(self) -> bool:
        """True once the log has its terminal event."""
        return self._machine.terminal

    @property
    def stopped_by_text(self) -> bool:
        """True once a stop string was found: the engine may stop drawing."""
        return self._segmenter.stop is not None

    def drain(self) -> list[Event]:
        """The events since the last call; they are in the log already."""
        events, self._fresh = self._fresh, []
        return events

    def accept(self, command: Accept) -> None:
        """The engine took the request: the log begins."""
        self.accepted = True
        self._receive(command)

    def advance(self, frame: StepFrame, row: int, first: int, now: int) -> None:
        """Take one row; ``first`` is the row's first token in the frame's columns.

        ``now`` is the time in Unix seconds, for the terminal event. A row that ends in ERROR or
        ABORT is not for this method but for ``fail``.
        """
        if (cached := frame.cached[row]) != NOT_REPORTED:
            self._cached = cached
        self._feed(self._pieces(frame, row, first))
        finish = frame.finish[row]
        if self.stopped_by_text or finish in _REASONS:
            stop_id = frame.stop_id[row]
            self._stop_id_tokens = int(stop_id != NO_STOP_ID and not self.stopped_by_text)
            self._flush()
            self._finish(_REASONS.get(finish, "stop"), stop_id, now)

    def fail(self, code: str, message: str) -> None:
        """The run failed: what is held comes out, then the terminal events."""
        if not self.accepted or self.ended:
            return
        try:
            self._flush()
        except Exception:  # what is held may be the very thing that failed
            log.exception("held text of choice %d is lost", self.index)
        self._receive(Fail(code=code, message=message, usage=self.usage()))

    def cancel(self) -> None:
        """The client is gone."""
        if self.accepted and not self.ended:
            self._receive(Cancel(usage=self.usage()))

    def usage(self) -> Usage:
        """Tokens so far; an id that stopped the sequence counts, text after a stop string not."""
        return Usage(
            input_tokens=self._prompt_tokens,
            output_tokens=self._segmenter.output_tokens + self._stop_id_tokens,
            cached_tokens=self._cached,
            reasoning_tokens=self._segmenter.reasoning_tokens,
        )

    def _receive(self, command: Command) -> None:
        events = self._machine.receive(command)
        self.log.extend(events)
        self._fresh += events

    def _feed(self, pieces: list[Piece]) -> None:
        for segment in self._segmenter.feed(pieces):
            self._receive(segment)

    def _flush(self) -> None:
        """What detokenizer and segmenter still hold."""
        if self._detokenizer is not None and (tail := self._detokenizer.flush()):
            self._feed([Piece(text=tail)])
        for segment in self._segmenter.finish():
            self._receive(segment)

    def _finish(self, reason: FinishReason, stop_id: int, now: int) -> None:
        stop: str | int | None = self._segmenter.stop
        if stop is not None:
            reason = "stop"
        elif stop_id in self._stop_ids:
            stop = stop_id
        completed_at = now if reason == "stop" else None
        self._receive(
            Finish(reason=reason, usage=self.usage(), completed_at=completed_at, stop=stop)
        )

    def _pieces(self, frame: StepFrame, row: int, first: int) -> list[Piece]:
        ids = frame.token[first : first + frame.n_new[row]]
        if (spelling := frame.spelling.get(row)) is not None:
            return [
                Piece(
                    text=token.text,
                    ids=(token_id,),
                    logprobs=(
                        Logprob(
                            token=token.text,
                            logprob=token.logprob,
                            data=token.data,
                            top=tuple(TopLogprob(*top) for top in token.top),
                        ),
                    ),
                )
                for token_id, token in zip(ids, spelling, strict=True)
            ]
        detokenizer = self._detokenizer
        if detokenizer is None or row in frame.text:
            return [Piece(text=frame.text.get(row, ""), ids=tuple(ids))]
        return [
            Piece(
                text=detokenizer.feed(token),
                ids=(token,),
                logprobs=self._logprob(detokenizer, frame, first + offset),
            )
            for offset, token in enumerate(ids)
        ]

    def _logprob(self, table: Detokenizer, frame: StepFrame, at: int) -> tuple[Logprob, ...]:
        token = frame.token[at]
        if not self._logprobs or frame.logprob is None or math.isnan(frame.logprob[at]):
            return ()
        if table.hides(token):  # logprobs cover the tokens of the visible text, nothing else
            return ()
        top: list[TopLogprob] = []
        if frame.top_id is not None and frame.top_lp is not None:
            for column in range(at * frame.top_n, (at + 1) * frame.top_n):
                if (alternative := frame.top_id[column]) == PAD_ID:
                    break
                top.append(
                    TopLogprob(
                        token=table.token_text(alternative),
                        logprob=frame.top_lp[column],
                        data=table.bytes_of(alternative),
                    )
                )
        return (
            Logprob(
                token=table.token_text(token),
                logprob=frame.logprob[at],
                data=table.bytes_of(token),
                top=tuple(top),
            ),
        )
