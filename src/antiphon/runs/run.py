"""A run: the choices of one client request, and the frames that its projection makes of them.

States and events live in the choices' machines; a run only knows whether it was taken by the
engine (``opened``), whether it is over (``ended``), and who reads. Frames are rendered once, and
kept only while nobody reads them. All methods run on the event loop's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import anyio

from antiphon.errors import AnswerFailed, AntiphonError
from antiphon.runs.choice import Choice
from antiphon.runs.plan import RunPlan
from responsory import EventLog
from responsory.commands import Accept

log = logging.getLogger(__name__)


class Reader(Protocol):
    """Who reads the frames of a run."""

    def take(self, frames: list[bytes]) -> None:
        """Frames that have just been made."""
        ...

    def end(self) -> None:
        """There are no more."""
        ...


class Run:
    """Made by ``Fanout.open``; advanced by it, one engine step at a time.

    ``created_at`` is in Unix seconds, the other times in nanoseconds of the fanout's clock.
    """

    def __init__(
        self, plan: RunPlan, choices: Sequence[Choice], created_at: int, opened_ns: int
    ) -> None:
        self.plan = plan
        self.opened_ns = opened_ns
        self.first_token_ns: int | None = None
        self.ended_ns: int | None = None
        self.choices = choices
        self.frames: list[bytes] = []
        """Those that nobody reads yet."""
        self.ended = False
        """True once every choice is over, or the run was refused or broke."""
        self.overrun = False
        """True once its reader is too far behind."""
        self._created_at = created_at
        self._refusal: AntiphonError | None = None
        self._failure: AntiphonError | None = None
        self._shown = 0
        """Frames made so far."""
        self._reader: Reader | None = None
        self._is_open = False
        self._begun = False
        self._opened = anyio.Event()
        self._ended = anyio.Event()

    @property
    def logs(self) -> list[EventLog]:
        """One event log per choice, in index order."""
        return [choice.log for choice in self.choices]

    @property
    def accepted(self) -> bool:
        """True once the engine took every choice."""
        return all(choice.accepted for choice in self.choices)

    @property
    def failure(self) -> AntiphonError | None:
        """Why the answer failed, once it has."""
        return self._failure

    @property
    def begun(self) -> bool:
        """True once the head of a stream is on its way: what fails now is told in the stream."""
        return self._begun

    async def opened(self) -> None:
        """Wait until the engine took every choice.

        Raises the refusal if it did not, or the failure if there is one already: while nothing has
        been sent it can be told plainly.
        """
        await self._opened.wait()
        if self._refusal is not None:
            raise self._refusal
        self._begun = self.plan.answer.stream is not None

    async def finished(self) -> None:
        """Wait for the end. Raises the failure if the run failed."""
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def read_by(self, reader: Reader) -> None:
        """``reader`` takes the frames from now on, those that were kept included."""
        self._reader = reader
        kept, self.frames = self.frames, []
        if kept:
            reader.take(kept)

    def accept(self, choice: Choice) -> None:
        """The engine took one choice."""
        choice.accept(
            Accept(
                id=self.plan.tail, created_at=self._created_at, echo=self.plan.echo_of(choice.index)
            )
        )

    def end(self, refusal: AntiphonError, failure: AntiphonError) -> None:
        """Fail with ``failure`` once every choice was accepted, else be refused; or give up."""
        try:
            if self.accepted:
                self.fail(failure)
            else:
                self.refuse(refusal)
        except Exception:
            log.exception("run %s cannot be ended", self.plan.tail)
            self.give_up(AnswerFailed())

    def refuse(self, refusal: AntiphonError) -> None:
        """The engine did not take a choice: there will be no answer at all."""
        self._refusal = refusal
        self.cancel()
        self.ended = True

    def fail(self, failure: AntiphonError) -> None:
        """End every open choice as failed; the siblings of a failed choice fail with it."""
        self._failure = failure
        if not self._begun:
            self._refusal = failure
        for choice in self.choices:
            choice.fail("server_error", failure.message)
        self.settle()

    def cancel(self) -> None:
        """End every open choice as cancelled: nobody is there to read."""
        for choice in self.choices:
            choice.cancel()
        self.settle()

    def settle(self) -> None:
        """See whether the run is over. Called when a choice has ended."""
        self.ended = self.ended or all(choice.ended for choice in self.choices)

    def give_up(self, failure: AntiphonError) -> None:
        """The run cannot be failed or rendered: end its stream by hand, wake whoever waits."""
        self.ended = True
        self._failure = failure
        for choice in self.choices:
            try:
                choice.fail("server_error", failure.message)
            except Exception:  # its log stays open: there is nobody left who could end it
                log.exception("choice %d of run %s cannot be ended", choice.index, self.plan.tail)
        answer = self.plan.answer
        if not self._is_open:  # nothing has been sent, so it can still be said plainly
            self._refusal = failure
        elif answer.stream is not None and not answer.stream.ended:
            self._show(answer.last_words(failure.message, self._shown, self.logs))
        self._wake()

    def publish(self) -> None:
        """Render what is new for the reader: once per step, whatever happened in it."""
        projection = self.plan.answer.stream
        for choice in self.choices:
            events = choice.drain()
            if (
                events
                and projection is not None
                and (frames := projection.feed(choice.index, events))
            ):
                self._show(frames)
        if self.ended or not self._is_open:
            self._wake()

    def _show(self, frames: list[bytes]) -> None:
        self._shown += len(frames)
        if self._reader is not None:
            self._reader.take(frames)
        else:
            self.frames += frames

    def _wake(self) -> None:
        if not self._is_open and (self._refusal is not None or self.accepted):
            self._is_open = True
            self._opened.set()
        if self.ended and not self._ended.is_set():
            self._ended.set()
            if self._reader is not None:
                self._reader.end()
