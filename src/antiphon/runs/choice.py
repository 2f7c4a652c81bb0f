"""One choice of a run: the tokens of one engine request become events of one log."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Literal

from antiphon.engines.port import (
    NO_STOP_ID,
    NOT_REPORTED,
    PromptLogprobs,
    StepFrame,
    TokenSpelling,
)
from antiphon.engines.port import Finish as EngineFinish
from antiphon.prompting.detokenizer import Detokenizer
from antiphon.runs.logprobs import drawn_logprob, prompt_logprobs, recorded_logprob
from antiphon.runs.plan import EchoedPrompt
from responsory import EventLog, Logprob, Response, Usage
from responsory.commands import Accept, Cancel, Command, Fail, Finish, Text
from responsory.events import Event
from responsory.segments import Piece, Segmenter
from responsory.values import Tokens

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
        prompt: Sequence[int],
        detokenizer: Detokenizer | None,
        segmenter: Segmenter,
        logprobs: bool,
        stop_ids: frozenset[int],
        tell_tokens: bool = False,
        tokens_as_ids: bool = False,
        echoed: EchoedPrompt | None = None,
        echo_logprobs: bool = False,
        keep_deltas: bool = True,
    ) -> None:
        """``echo_logprobs``: the echo waits for the logprobs of the prompt. ``keep_deltas``: the
        log is for somebody who comes back to the stream; else it has what bodies need, no more."""
        self.key = key
        self.index = index
        self.accepted = False
        self.ended = False
        """The log has its terminal event."""
        self.log = EventLog(compacted=not keep_deltas)
        self._fresh: list[Event] = []
        self._machine = Response()
        self._detokenizer = detokenizer
        self._speller: Detokenizer | None = None
        """Of recorded tokens that bring their own bytes."""
        self._segmenter = segmenter
        self._logprobs = logprobs
        self._stop_ids = stop_ids
        self._prompt = prompt
        self._tell_tokens = tell_tokens
        self._tokens_as_ids = tokens_as_ids
        self._echoed = echoed
        self._echo_logprobs = echo_logprobs
        self._cached = 0
        self._stop_id_tokens = 0

    def drain(self) -> list[Event]:
        """The events since the last call; the log has taken them already."""
        events, self._fresh = self._fresh, []
        return events

    def accept(self, command: Accept) -> None:
        """The engine took the request: the log begins."""
        self.accepted = True
        self._receive(command)
        if not self._echo_logprobs:
            self._echo(None)

    def plain(self, token: int) -> bool:
        """Take a row that is one new token and says nothing else: nearly every row is.

        False: nothing was taken, because the token takes more than a look at it; ``advance`` is
        due. What is said here is what ``advance`` would say.
        """
        detokenizer = self._detokenizer
        if detokenizer is None or self._logprobs or self._echoed is not None:
            return False
        text = detokenizer.whole(token)
        if text is None or (segment := self._segmenter.glance(text)) is None:
            return False
        events = self._machine.receive(segment)
        self.log.extend(events)
        self._fresh += events
        return True

    def advance(self, frame: StepFrame, row: int, first: int, now: int) -> None:
        """Take one row; ``first`` is the row's first token in the frame's columns.

        ``now`` is the time in Unix seconds, for the terminal event. A row that ends in ERROR or
        ABORT is not for this method but for ``fail``.
        """
        self.take(frame, row, first)
        finish = frame.finish[row]
        if self._segmenter.ended or finish in _REASONS:
            self._end(_REASONS.get(finish, "stop"), frame.stop_id[row], now)

    def take(self, frame: StepFrame, row: int, first: int) -> None:
        """Take the tokens of one row, and nothing of how it ends."""
        if (cached := frame.cached[row]) != NOT_REPORTED:
            self._cached = cached
        if row in frame.prompt_lp:
            self._echo(frame.prompt_lp[row])
        elif frame.n_new[row] or frame.finish[row]:
            self._echo(None)  # an engine that does not keep its word costs no prompt
        self._feed(self._pieces(frame, row, first))

    def fail(self, code: str, message: str) -> None:
        """The run failed: what is held comes out, then the terminal events."""
        if not self.accepted or self.ended:
            return
        try:
            self._flush(cut=True)
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
            input_tokens=len(self._prompt),
            output_tokens=self._segmenter.output_tokens + self._stop_id_tokens,
            cached_tokens=self._cached,
            reasoning_tokens=self._segmenter.reasoning_tokens,
        )

    def _receive(self, command: Command) -> None:
        events = self._machine.receive(command)
        self.log.extend(events)
        self._fresh += events
        self.ended = self._machine.terminal

    def _feed(self, pieces: list[Piece]) -> None:
        for segment in self._segmenter.feed(pieces):
            self._receive(segment)

    def _echo(self, logprobs: PromptLogprobs | None) -> None:
        """The prompt comes first, once."""
        echoed, self._echoed = self._echoed, None
        if echoed is None:
            return
        entries: tuple[Logprob, ...] = ()
        if logprobs is not None and self._detokenizer is not None:
            entries = prompt_logprobs(
                self._detokenizer,
                self._prompt,
                logprobs,
                echoed.unseen,
                ids=self._tokens_as_ids,
            )
        if echoed.text or entries:
            tokens = Tokens((), 0) if self._tell_tokens else None
            self._receive(Text(echoed.text, entries, tokens=tokens))

    def _flush(self, *, cut: bool) -> None:
        """What detokenizer and segmenter still hold; ``cut``: the model had not ended."""
        detokenizer = self._detokenizer or self._speller
        if detokenizer is not None and (tail := detokenizer.flush()):
            self._feed([Piece(text=tail)])
        for segment in self._segmenter.finish(cut=cut):
            self._receive(segment)

    def _end(self, reason: FinishReason, stop_id: int, now: int) -> None:
        segmenter = self._segmenter
        cut_short = segmenter.ended
        stopped = stop_id != NO_STOP_ID and not cut_short
        self._stop_id_tokens = int(stopped)
        self._flush(cut=reason != "stop" and not cut_short)
        # What the flush brought may have completed a stop string.
        stop: str | int | None = segmenter.stop
        if segmenter.ended:
            reason = "stop"
        elif stop_id in self._stop_ids:
            stop = stop_id
        ids: tuple[int, ...] = ()
        if self._tell_tokens:
            ids = (*segmenter.rest, stop_id) if stopped else segmenter.rest
        completed_at = now if reason == "stop" else None
        self._receive(
            Finish(reason=reason, usage=self.usage(), completed_at=completed_at, stop=stop, ids=ids)
        )

    def _pieces(self, frame: StepFrame, row: int, first: int) -> list[Piece]:
        ids = frame.token[first : first + frame.n_new[row]]
        if (spelling := frame.spelling.get(row)) is not None:
            return [
                self._spelled(token_id, token)
                for token_id, token in zip(ids, spelling, strict=True)
            ]
        detokenizer = self._detokenizer
        if detokenizer is None or row in frame.text:
            if self._speller is not None:
                return []  # more text of the last token, which its bytes have brought already
            return [Piece(text=frame.text.get(row, ""), ids=tuple(ids))]
        return [
            Piece(
                text=detokenizer.feed(token),
                ids=(token,),
                logprobs=self._logprob(detokenizer, frame, first + offset),
            )
            for offset, token in enumerate(ids)
        ]

    def _spelled(self, token_id: int, token: TokenSpelling) -> Piece:
        """A recorded token: what it shows are its bytes, whatever it is called."""
        if self._detokenizer is not None:
            text = self._detokenizer.feed(token_id)
        else:
            self._speller = self._speller or Detokenizer(())
            text = self._speller.feed_bytes(token.data)
        entry = recorded_logprob(token, token_id, ids=self._tokens_as_ids)
        return Piece(text=text, ids=(token_id,), logprobs=(entry,))

    def _logprob(self, table: Detokenizer, frame: StepFrame, at: int) -> tuple[Logprob, ...]:
        if not self._logprobs or frame.logprob is None:
            return ()
        logprob = frame.logprob[at]
        if math.isnan(logprob):  # it was not asked for
            return ()
        return (drawn_logprob(table, frame, at, logprob, ids=self._tokens_as_ids),)
