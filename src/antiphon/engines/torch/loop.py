"""The engine's loop: one thread that turns commands into frames.

A turn: drain the inbox, answer it (accept rows, refusals, aborts) before any forward pass, then
schedule a step and launch it, and book the earliest that is in flight once there are ``depth`` of
them: its draws are awaited, and its frame is sent. At depth 1 nothing is in flight between turns;
at depth 2 the device has its next step before the host looks at what the last one drew.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.port import (
    NOT_REPORTED,
    EngineError,
    EngineInfo,
    EngineRequest,
    Finish,
    Gauges,
    StepFrame,
)
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.grammar.compiler import Compiler
from antiphon.engines.torch.inbox import Abort, AbortAll, Command, Drain, Formed, Inbox, Submit
from antiphon.engines.torch.intake import Intake
from antiphon.engines.torch.rows import add_rows
from antiphon.engines.torch.scheduler import Scheduler
from antiphon.engines.torch.sequence import Sequence as RunningSequence
from antiphon.engines.torch.step import Step

log = logging.getLogger(__name__)


class StepLaunch(Protocol):
    """A step on the device."""

    def drawn(self) -> Drawn:
        """What it drew, for each of ``Step.drawing``; waits until it is known."""
        ...


class StepRunner(Protocol):
    """Runs the model on the chunks of a step."""

    def launch(self, step: Step) -> StepLaunch:
        """Start a step behind those launched before."""
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
        depth: int = 1,
        compiler: Compiler | None = None,
    ) -> None:
        self.info = info
        self.scheduler = scheduler
        self.runner = runner
        self.inbox = inbox
        self.emit = emit
        self.depth = depth
        """Steps that may be in flight when the host waits for one."""
        self.intake = Intake(info, compiler)
        self.failure: BaseException | None = None
        self.gauges = Gauges()
        self._draining = False
        self._in_flight: deque[tuple[Step, StepLaunch, int]] = deque()
        """With the time of their launch, the earliest first."""
        self._step = 0
        self._owed: dict[int, None] = {}  # a set in order of arrival
        """Keys taken off the inbox whose terminal row no frame has carried yet."""

    def run(self) -> None:
        """Turn until drained. Any exception ends all owed keys with ``engine_failed``."""
        try:
            while not self._draining or self.busy or self.intake:
                self.turn()
        except BaseException as failure:
            log.exception("the engine failed")
            self.failure = failure
            # The scheduler may know less: what has left it may be in a frame that was never sent.
            frame = self._frame()
            for key in self._owed:
                frame.row(key, finish=Finish.ERROR, error=self.failed())
            self._send(frame)

    @property
    def busy(self) -> bool:
        """Whether there is anything to do without another command."""
        return bool(self.scheduler or self._in_flight)

    def turn(self) -> None:
        """Answer the commands that have arrived, then launch or book a step if anything is open."""
        commands = self.inbox.take(wait=not self.busy)
        if commands:
            frame = self._frame()
            for command in commands:
                if isinstance(command, Submit):
                    self._owed[command.request.key] = None
            for command in commands:
                self._obey(command, frame)
            self.scheduler.admit()  # into the room that aborts made, before the frame counts it
            self._send(frame)
        step = self.scheduler.schedule()
        if step is not None:
            began = time.perf_counter_ns()
            self._in_flight.append((step, self.runner.launch(step), began))
        if len(self._in_flight) >= self.depth or (step is None and self._in_flight):
            self._book(*self._in_flight.popleft())

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

    def _book(self, step: Step, launch: StepLaunch, began: int) -> None:
        drawn = launch.drawn()
        booked = self.scheduler.book(step, drawn.token, drawn.refused)
        self.gauges.step_us = (time.perf_counter_ns() - began) // 1_000
        self.gauges.batch_tokens = step.tokens
        frame = self._frame(drawn.top_n)
        add_rows(frame, booked, drawn)
        self._send(frame)

    def _obey(self, command: Command, frame: FrameBuilder) -> None:
        match command:
            case Submit(request):
                self._submit(request, frame)
            case Abort(keys):
                self._abort(keys, frame)
            case Drain():
                self._draining = True
            case AbortAll():
                self._abort([*self.scheduler.open_keys(), *self.intake.keys()], frame)
            case Formed(form, made):
                for key, taken in self.intake.formed(form, made):
                    self._answer(key, taken, frame)

    def _submit(self, request: EngineRequest, frame: FrameBuilder) -> None:
        if request.key in self.scheduler or request.key in self.intake:
            log.error("key %d was submitted twice; the second request is ignored", request.key)
            return
        taken = _stopping() if self._draining else self.intake.take(request)
        if taken is not None:
            self._answer(request.key, taken, frame)

    def _answer(self, key: int, taken: RunningSequence | EngineError, frame: FrameBuilder) -> None:
        """The first row of a request: it is accepted, or refused."""
        if isinstance(taken, RunningSequence) and not self.scheduler.add(taken):
            taken = _overloaded()
        if isinstance(taken, EngineError):
            frame.row(key, finish=Finish.ERROR, error=taken)
        else:
            frame.row(key)

    def _abort(self, keys: Sequence[int], frame: FrameBuilder) -> None:
        for key in keys:
            sequence = self.scheduler.remove(key)
            if sequence is not None:
                cached = NOT_REPORTED if sequence.drawn else sequence.hits
                frame.row(key, finish=Finish.ABORT, cached=cached)
            elif self.intake.drop(key):
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
            waiting=len(scheduler.waiting) + len(self.intake),
            pages_free=scheduler.pool.free,
            pages_cached=scheduler.pool.kept,
            batch_tokens=self.gauges.batch_tokens,
            preemptions=scheduler.preemptions,
            step_us=self.gauges.step_us,
        )


def _stopping() -> EngineError:
    return EngineError(code="engine_overloaded", message="the engine is stopping")


def _overloaded() -> EngineError:
    return EngineError(code="engine_overloaded", message="the waiting queue is full")
