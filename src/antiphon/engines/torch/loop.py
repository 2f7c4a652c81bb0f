"""The engine's loop: one thread that turns commands into frames.

A turn: drain the inbox, answer it (accept rows, refusals, aborts) before any forward pass, then
schedule a step, run it, book it and send its frame.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import EngineError, EngineInfo, EngineRequest, Finish, Gauges, StepFrame
from antiphon.engines.torch.admission import refusal
from antiphon.engines.torch.drawn import DrawnToken
from antiphon.engines.torch.inbox import Abort, Command, Drain, Inbox, Submit
from antiphon.engines.torch.scheduler import Chunk, Outcome, Scheduler
from antiphon.engines.torch.sequence import Sequence as RunningSequence

log = logging.getLogger(__name__)


class StepRunner(Protocol):
    """Runs the model on the chunks of a step."""

    def run(self, chunks: Sequence[Chunk]) -> dict[int, DrawnToken]:
        """The token drawn for every chunk that draws, by key."""
        ...


class EngineLoop:
    """State of the engine's thread; ``run`` is its main function."""

    def __init__(
        self,
        info: EngineInfo,
        scheduler: Scheduler,
        runner: StepRunner,
        inbox: Inbox,
        emit: Callable[[StepFrame], None],
    ) -> None:
        self.info = info
        self.scheduler = scheduler
        self.runner = runner
        self.inbox = inbox
        self.emit = emit
        self.failure: BaseException | None = None
        self.gauges = Gauges()
        self._draining = False
        self._step = 0
        self._owed: dict[int, None] = {}  # a set in order of arrival
        """Keys taken off the inbox whose terminal row no frame has carried yet."""

    def run(self) -> None:
        """Turn until drained. Any exception ends all owed keys with ``engine_failed``."""
        try:
            while not (self._draining and not self.scheduler):
                self.turn()
        except BaseException as failure:
            log.exception("the engine failed")
            self.failure = failure
            # The scheduler may know less: what has left it may be in a frame that was never sent.
            frame = self._frame()
            for key in self._owed:
                frame.row(key, finish=Finish.ERROR, error=self.failed())
            self._send(frame)

    def turn(self) -> None:
        """Answer the commands that have arrived, then run one step if anything is open."""
        commands = self.inbox.take(wait=not self.scheduler)
        if commands:
            frame = self._frame()
            for command in commands:
                if isinstance(command, Submit):
                    self._owed[command.request.key] = None
            for command in commands:
                self._obey(command, frame)
            self.scheduler.admit()  # into the room that aborts made, before the frame counts it
            self._send(frame)
        chunks = self.scheduler.schedule()
        if chunks:
            self._run_step(chunks)

    def close(self) -> None:
        """After ``run``: refuse what was submitted too late."""
        self._draining = True
        frame = self._frame()
        for command in self.inbox.take(wait=False):
            if isinstance(command, Submit):
                error = self.failed() if self.failure is not None else _stopping()
                frame.row(command.request.key, finish=Finish.ERROR, error=error)
        self._send(frame)

    def failed(self) -> EngineError:
        """The error of every key that was open when the engine died."""
        return EngineError(code="engine_failed", message=f"the engine failed: {self.failure!r}")

    def _run_step(self, chunks: list[Chunk]) -> None:
        began = time.perf_counter_ns()
        drawn = self.runner.run(chunks)
        outcomes = self.scheduler.book(chunks, {key: one.token for key, one in drawn.items()})
        self.gauges.step_us = (time.perf_counter_ns() - began) // 1_000
        self.gauges.batch_tokens = sum(chunk.count for chunk in chunks)
        frame = self._frame(max((len(one.top) for one in drawn.values()), default=0))
        for outcome in outcomes:
            _add_row(frame, outcome, drawn.get(outcome.sequence.key))
        self._send(frame)

    def _obey(self, command: Command, frame: FrameBuilder) -> None:
        match command:
            case Submit(request):
                self._submit(request, frame)
            case Abort(keys):
                self._abort(keys, frame)
            case Drain():
                self._draining = True
            case _:
                self._abort(self.scheduler.open_keys(), frame)

    def _submit(self, request: EngineRequest, frame: FrameBuilder) -> None:
        if request.key in self.scheduler:
            log.error("key %d was submitted twice; the second request is ignored", request.key)
            return
        error = _stopping() if self._draining else refusal(request, self.info)
        if error is None:
            info = self.info
            sequence = RunningSequence.of(request, info.context_length, info.eos_ids)
            error = None if self.scheduler.add(sequence) else _overloaded()
        if error is None:
            frame.row(request.key, cached=0)
        else:
            frame.row(request.key, finish=Finish.ERROR, error=error)

    def _abort(self, keys: Sequence[int], frame: FrameBuilder) -> None:
        for key in keys:
            if self.scheduler.remove(key) is not None:
                frame.row(key, finish=Finish.ABORT)

    def _frame(self, top_n: int = 0) -> FrameBuilder:
        return FrameBuilder(self._step, top_n)

    def _send(self, frame: FrameBuilder) -> None:
        """Emit the frame unless it is empty."""
        if not len(frame):
            return
        self._step += 1
        built = frame.build(time.monotonic_ns(), self._load())
        self.emit(built)
        for key, finish in zip(built.key, built.finish, strict=True):
            if finish:
                self._owed.pop(key, None)

    def _load(self) -> Gauges:
        """The load now; of a dead engine, whose scheduler may hold anything, none."""
        scheduler = self.scheduler
        if self.failure is not None:
            return Gauges(preemptions=scheduler.preemptions)
        return Gauges(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            pages_free=scheduler.pool.free,
            batch_tokens=self.gauges.batch_tokens,
            preemptions=scheduler.preemptions,
            step_us=self.gauges.step_us,
        )


def _add_row(frame: FrameBuilder, outcome: Outcome, drawn: DrawnToken | None) -> None:
    """The row of an outcome; logprobs only for a token that is part of the output.

    The first row is also the one that carries the prompt's logprobs: the prompt has been read.
    """
    sequence = outcome.sequence
    scores, sequence.scores = sequence.scores, None
    prompt_lp = None if scores is None else scores.block()
    key, finish = sequence.key, outcome.finish
    if outcome.token is None:
        frame.row(key, finish=finish, stop_id=outcome.stop_id, prompt_lp=prompt_lp)
        return
    tokens = (outcome.token,)
    if drawn is None or drawn.logprob is None:
        frame.row(key, tokens, finish=finish, prompt_lp=prompt_lp)
        return
    logprobs, top = (drawn.logprob,), (drawn.top,)
    frame.row(key, tokens, finish=finish, logprobs=logprobs, top=top, prompt_lp=prompt_lp)


def _stopping() -> EngineError:
    return EngineError(code="engine_overloaded", message="the engine is stopping")


def _overloaded() -> EngineError:
    return EngineError(code="engine_overloaded", message="the waiting queue is full")
