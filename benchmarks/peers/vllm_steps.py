"""What a core of vLLM reports a step, without a model, played as our scripted engine plays.

A token a step for each stream, the number of the step as a word; streams that come together begin
together; a step that is late is not made up for. Runs under the interpreter that has vLLM, whose
modules are taken by name, since their types are not known where this project is checked.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.words import SIZE

PATIENCE_S = 0.25
"""How long those that wait go on waiting for others, after the latest has come."""
HEAD_S = 0.002
"""How long the step after the first of a stream is put off, for each stream that began: the front
end writes the heads of the answers then, and what came meanwhile it would join into one event."""
LOOK_S = 0.002
"""How long a core that gathers streams may sleep: within the front end nobody wakes it."""


@dataclass(frozen=True)
class Job:
    """What the launcher tells a program, in JSON, as its one argument."""

    model: str
    port: int
    streams: int
    step_us: int
    context: int
    first_word: int
    """The id of word 0."""
    inputs: str
    """Address of the front end's socket for requests; empty where the core is within it."""
    outputs: str
    times: str
    """File of the table of times; empty if nobody asks for them."""

    @classmethod
    def of_argument(cls) -> Job:
        """The job of this program."""
        fields: Mapping[str, Any] = json.loads(sys.argv[1])
        return cls(**fields)


class Steps:
    """The requests of a core and the clock of its steps; at most ``streams`` run at a time."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = import_module("vllm.v1.engine")
        self._stats = import_module("vllm.v1.metrics.stats")
        self._clock = clock
        self._first_word = job.first_word
        self._together = job.streams
        self._period = job.step_us / 1e6
        self._times = StepTimes(Path(job.times)) if job.times else None
        self._waiting: dict[str, Any] = {}
        """id → request, of those that have not begun."""
        self._running: dict[str, int] = {}
        """id → tokens left."""
        self._step = 0
        self._due = self._came = 0.0

    def add(self, request: Any) -> None:
        """Take an ``EngineCoreRequest``."""
        self._waiting[request.request_id] = request
        self._came = self._clock()

    def abort(self, ids: Iterable[str]) -> None:
        """Drop requests; those that are not known are ignored."""
        for name in ids:
            self._waiting.pop(name, None)
            self._running.pop(name, None)

    def wait(self) -> float | None:
        """Seconds until ``step`` is worth a call; None while there is no request."""
        now = self._clock()
        moments = [self._due] if self._running else []
        if self._waiting and len(self._running) < self._together:
            moments.append(max(self._due, now if self._all_are_here(now) else now + LOOK_S))
        return max(0.0, min(moments) - now) if moments else None

    def step(self) -> Any | None:
        """The ``EngineCoreOutputs`` of a step; None if none is due."""
        now = self._clock()
        if now < self._due:
            return None
        begun = self._begin() if self._waiting and self._all_are_here(now) else {}
        if not self._running:
            return None
        late = now - self._due > self._period
        self._due = (now if late else self._due) + self._period + HEAD_S * len(begun)
        word, made = self._step % SIZE, self._engine.EngineCoreOutput
        token = self._first_word + word
        outputs = [made(name, [token]) for name in self._running]
        ended = set()
        for output in outputs:
            name = output.request_id
            self._running[name] -= 1
            if name in begun:
                self._report_prompt(output, begun[name], now)
            if self._running[name] <= 0:
                output.finish_reason = self._engine.FinishReason.LENGTH
                ended.add(name)
                del self._running[name]
        self._step += 1
        if self._times is not None:
            self._times[word] = time.monotonic_ns()
        return self._engine.EngineCoreOutputs(
            outputs=outputs,
            scheduler_stats=self._stats.SchedulerStats(num_running_reqs=len(outputs)),
            finished_requests=ended or None,
        )

    def _all_are_here(self, now: float) -> bool:
        there = len(self._waiting) + len(self._running)
        return there >= self._together or now >= self._came + PATIENCE_S

    def _begin(self) -> dict[str, Any]:
        """Those that begin in the step that comes now, by id."""
        room = self._together - len(self._running)
        begun = dict(islice(self._waiting.items(), room))
        for name, request in begun.items():
            del self._waiting[name]
            self._running[name] = request.sampling_params.max_tokens
        return begun

    def _report_prompt(self, output: Any, request: Any, now: float) -> None:
        """The front end's statistics ask when a request was queued and what its prompt was."""
        event, kinds = self._engine.EngineCoreEvent, self._engine.EngineCoreEventType
        prompt = len(request.prompt_token_ids)
        output.events = [event(kinds.QUEUED, now), event(kinds.SCHEDULED, now)]
        output.prefill_stats = self._stats.PrefillStats(
            num_prompt_tokens=prompt, num_computed_tokens=prompt
        )
