"""The one consumer of an engine's frames: each step, every request in it, in one pass.

For each row: ids to text to segments to events to the log (``Choice``), then, once per touched
run, events to frame bytes, offered to its reader (``Run.publish``), then one write to each
connection that has got some (``flush``). No task wakes for any of it. A fault in one run fails that
run and no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from antiphon.engines.port import NOT_REPORTED, EnginePort, Finish, Gauges, StepFrame
from antiphon.errors import (
    AnswerFailed,
    AntiphonError,
    DeadlinePassed,
    EngineFailed,
    ReaderTooSlow,
    ShuttingDown,
)
from antiphon.runs.admission import Admission
from antiphon.runs.choice import Choice
from antiphon.runs.deadlines import SECOND_NS, Deadlines
from antiphon.runs.keys import Keys
from antiphon.runs.plan import RunPlan
from antiphon.runs.refusals import engine_unavailable, failed
from antiphon.runs.run import Run
from antiphon.runs.siblings import choice_for, engine_requests
from antiphon.runs.stopping import has_stopped

log = logging.getLogger(__name__)


BROKEN = frozenset({Finish.ABORT, Finish.ERROR})
"""A row that ends so may bring tokens, and leaves the answer in pieces."""


class Fanout:
    """Opens runs on an engine and carries its frames to them.

    ``wall_s`` gives Unix seconds, ``monotonic_ns`` the clock of arrival times. A run may take
    ``timeout_s`` seconds, 0 is no limit: first to be accepted, then, from there on, to end.
    ``observe`` is told of every run that has ended, once. ``admission`` bounds the open choices.
    ``flush`` is called after each step.
    """

    def __init__(
        self,
        engine: EnginePort,
        *,
        wall_s: Callable[[], float],
        monotonic_ns: Callable[[], int],
        timeout_s: float = 0.0,
        observe: Callable[[Run], None] = lambda _: None,
        admission: Admission | None = None,
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self.admission = admission or Admission()
        self.on_closed: Callable[[], object] = lambda: None
        """Called once, when no new run is opened any more."""
        self.left_behind = False
        """Whether the engine was told to stop and has not, in its time."""
        self._engine = engine
        self._wall_s = wall_s
        self._monotonic_ns = monotonic_ns
        self._observe = observe
        self._flush = flush
        self._deadlines: Deadlines[Run] = Deadlines(int(timeout_s * SECOND_NS))
        self.gauges = Gauges()
        """As of the engine's last step."""
        self._open: dict[int, tuple[Run, Choice]] = {}
        self._keys = Keys(self._open)
        self._tails: dict[str, Run] = {}
        self._engine_gone = False
        self._closed = False
        self._consumed = anyio.Event()

    @property
    def closed(self) -> bool:
        """True once no new run is opened, because the server is about to stop."""
        return self._closed

    @property
    def engine_gone(self) -> bool:
        """True once the engine's frames have ended: nothing can be run any more."""
        return self._engine_gone

    @property
    def running(self) -> int:
        """Choices that the engine still works for."""
        return len(self._open)

    @property
    def load(self) -> tuple[int, int]:
        """(running, waiting): of the open choices, those that take part in steps and the others.

        As of the engine's last step, less those that have gone since.
        """
        running = min(self.gauges.running, len(self._open))
        return running, len(self._open) - running

    def has_tail(self, tail: str) -> bool:
        """Whether a live run has this id tail."""
        return tail in self._tails

    def check_room(self, prompts: int = 1, n: int = 1, prompt_param: str = "prompt") -> None:
        """Whether ``n`` choices for each prompt can be opened now. Raises an ``AntiphonError``."""
        if self._closed:
            raise ShuttingDown()
        if self._engine_gone:
            raise engine_unavailable()
        param = "n" if n >= prompts else prompt_param
        self.admission.check(len(self._open), prompts * n, self._monotonic_ns(), param)

    def wait_s(self, choices: int) -> float:
        """In how many seconds there may be room for so many, at the pace so far."""
        return self.admission.wait_s(choices, self._monotonic_ns())

    def open(self, plan: RunPlan) -> Run:
        """Submit the plan's choices. Raises an ``AntiphonError`` for what can be told at once."""
        self.check_room(len(plan.prompts), plan.n, plan.prompt_param)
        if not plan.model.info.healthy:
            raise engine_unavailable(plan.model.info, self._monotonic_ns())
        plan.check_capabilities()
        now_ns = self._monotonic_ns()
        self.admission.began(len(self._open), now_ns)
        requests = list(engine_requests(plan, self._keys, now_ns))
        choices = [choice_for(plan, request) for request in requests]
        run = Run(plan, choices, int(self._wall_s()), now_ns)
        self._tails[plan.tail] = run
        for choice in choices:
            self._open[choice.key] = (run, choice)
        self._deadlines.start(run, now_ns)
        for request in requests:
            self._engine.submit(request)
        return run

    def cancel(self, run: Run) -> None:
        """The run's client is gone: abort its engine requests. Idempotent."""
        if self._release(run):
            run.cancel()
            self._publish(run)

    async def drain(self, grace_s: float) -> None:
        """Open no new run; let the open ones end, by themselves within ``grace_s`` or failed.

        Cancelled, it fails them at once. An engine that does not stop then is left behind.
        """
        if not self._closed:
            self._closed = True
            self.on_closed()
        try:
            if self._open and grace_s:
                await has_stopped(self._engine, self._consumed, grace_s)
        finally:
            self._end_all(ShuttingDown())
        self.left_behind = not await has_stopped(self._engine, self._consumed, 0)
        if self.left_behind:
            log.warning("the engine does not stop")

    async def consume(self) -> None:
        """Carry frames until the engine ends; then no run is left open."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._deadlines.keep, self._monotonic_ns, self.expire)
                try:
                    async for frame in self._engine.frames():
                        self.step(frame)
                except Exception:
                    log.exception("the frames of the engine ended in an error")
                tasks.cancel_scope.cancel()
        finally:
            self._engine_gone = True
            self.gauges = Gauges()
            self._end_all(engine_unavailable(), EngineFailed())
            self._consumed.set()

    def expire(self) -> None:
        """Fail the runs whose time is over, and abort them in the engine."""
        for run in self._deadlines.late(self._monotonic_ns()):
            log.info("run %s has had its time", run.plan.tail)
            self._end(run, DeadlinePassed())
            self._publish(run)

    def step(self, frame: StepFrame) -> None:
        """Take one frame: the per-token path."""
        self.gauges = frame.gauges
        touched: dict[Run, None] = {}
        owners, finishes, counts, cached = self._open, frame.finish, frame.n_new, frame.cached
        tokens = frame.token
        bare = not (frame.text or frame.spelling or frame.prompt_lp)
        now = int(self._wall_s())
        first = 0
        for row, key in enumerate(frame.key):
            # Rows of keys that were cancelled or cut at a stop string have no owner any more.
            if (owner := owners.get(key)) is not None:
                run, choice = owner
                touched[run] = None
                try:
                    if finishes[row] or not choice.accepted or run.first_token_ns is None:
                        self._row(run, choice, frame, row, first, now)
                    elif not (
                        bare
                        and counts[row] == 1
                        and cached[row] == NOT_REPORTED
                        and choice.plain(tokens[first])
                    ):
                        choice.advance(frame, row, first, now)
                        if choice.ended:
                            self._ended(run, choice, finishes[row])
                except Exception:
                    log.exception("run %s failed in step %d", run.plan.tail, frame.step)
                    self._end(run, AnswerFailed())
            first += counts[row]
        for run in touched:
            self._publish(run)
        self._flush()

    def _row(
        self, run: Run, choice: Choice, frame: StepFrame, row: int, first: int, now: int
    ) -> None:
        finish = frame.finish[row]
        if finish in BROKEN and choice.accepted:
            choice.take(frame, row, first)  # what it still brought is part of the answer
        if finish == Finish.ERROR:
            self._end(run, failed(frame.error[row], run))
            return
        if finish == Finish.ABORT:  # not for this client, whose key would be gone
            self._end(run, ShuttingDown() if self._closed else EngineFailed())
            return
        if not choice.accepted:
            run.accept(choice)
            if run.accepted:
                self._deadlines.start(run, self._monotonic_ns())
        if run.first_token_ns is None and frame.n_new[row]:
            run.first_token_ns = self._monotonic_ns()
        choice.advance(frame, row, first, now)
        if choice.ended:
            self._ended(run, choice, finish)

    def _ended(self, run: Run, choice: Choice, finish: int) -> None:
        """A choice is over."""
        del self._open[choice.key]
        run.settle()
        if finish == Finish.NONE:  # a stop string was found; the engine does not know
            self._engine.abort((choice.key,))

    def _end(self, run: Run, refusal: AntiphonError, failure: AntiphonError | None = None) -> None:
        """Fail the run; while it is not fully accepted, refuse it instead."""
        self._release(run)
        run.end(refusal, failure or refusal)

    def _end_all(self, refusal: AntiphonError, failure: AntiphonError | None = None) -> None:
        for run in {id(run): run for run, _ in self._open.values()}.values():
            self._end(run, refusal, failure)
            self._publish(run)

    def _publish(self, run: Run) -> None:
        try:
            run.publish()
        except Exception:
            log.exception("run %s cannot be rendered", run.plan.tail)
            self._release(run)
            run.give_up(AnswerFailed())
        if run.overrun and not run.ended:
            log.info("the reader of run %s is too far behind", run.plan.tail)
            self._end(run, ReaderTooSlow())
            self._publish(run)
        if run.ended and run.ended_ns is None:
            run.ended_ns = self._monotonic_ns()
            self._forget(run)
            try:
                self._observe(run)
            except Exception:
                log.exception("the end of run %s is counted by nobody", run.plan.tail)

    def _release(self, run: Run) -> bool:
        """Forget the run's open keys and abort them; False when there were none."""
        keys = [choice.key for choice in run.choices if choice.key in self._open]
        for key in keys:
            del self._open[key]
        if keys:
            self._engine.abort(keys)
        self._forget(run)
        return bool(keys)

    def _forget(self, run: Run) -> None:
        """Its time is of no matter, and its id tail is free, if no later run has it already."""
        self._deadlines.forget(run)
        if self._tails.get(run.plan.tail) is run:
            del self._tails[run.plan.tail]
