"""What a core of vLLM reports a step, without a model: one token for each request that runs.

Runs under the interpreter that has vLLM, as do the two programs that use it. vLLM's modules are
taken by name, since no type of theirs is known where this project is checked.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

PROGRAM_ARGUMENT = 1


@dataclass(frozen=True)
class Job:
    """What the launcher tells a program, in JSON, as its one argument."""

    model: str
    port: int
    streams: int
    step_us: int
    first_word: int
    words: int
    inputs: str
    """Address of the front end's socket for requests; empty where the core is within it."""
    outputs: str

    @classmethod
    def of_argument(cls) -> Job:
        fields: Mapping[str, Any] = json.loads(sys.argv[PROGRAM_ARGUMENT])
        return cls(**fields)


class Steps:
    """The requests of a core. At most ``streams`` of them run, in order of arrival."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._engine = import_module("vllm.v1.engine")
        self._stats = import_module("vllm.v1.metrics.stats")
        self._left: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        """Tokens of the prompts of those that have not run yet."""
        self._said = 0

    def __bool__(self) -> bool:
        return bool(self._left)

    def add(self, request: Any) -> None:
        self._left[request.request_id] = request.sampling_params.max_tokens
        self._prompts[request.request_id] = len(request.prompt_token_ids)

    def abort(self, ids: Iterable[str]) -> None:
        for name in ids:
            self._left.pop(name, None)
            self._prompts.pop(name, None)

    def step(self) -> Any:
        """One ``EngineCoreOutputs``."""
        made = self._engine.EngineCoreOutput
        job, left, ended, outputs = self._job, self._left, set(), []
        for name in list(itertools.islice(left, job.streams)):
            self._said += 1
            output = made(name, [job.first_word + self._said % job.words])
            if name in self._prompts:
                self._begin(output, self._prompts.pop(name))
            left[name] -= 1
            if left[name] <= 0:
                output.finish_reason = self._engine.FinishReason.LENGTH
                ended.add(name)
                del left[name]
            outputs.append(output)
        return self._engine.EngineCoreOutputs(
            outputs=outputs,
            scheduler_stats=self._stats.SchedulerStats(num_running_reqs=len(outputs)),
            finished_requests=ended or None,
        )

    def _begin(self, output: Any, prompt: int) -> None:
        """The front end's statistics ask when a request was queued and what its prompt was."""
        event, kinds, now = (
            self._engine.EngineCoreEvent,
            self._engine.EngineCoreEventType,
            time.monotonic(),
        )
        output.events = [event(kinds.QUEUED, now), event(kinds.SCHEDULED, now)]
        output.prefill_stats = self._stats.PrefillStats(
            num_prompt_tokens=prompt, num_computed_tokens=prompt
        )


class Pace:
    """When the next step is due. A core that is late is slower; it does not catch up in a burst."""

    def __init__(self, step_us: int) -> None:
        self._period = step_us / 1e6
        self._due = 0.0

    def wait(self) -> float:
        """Seconds until the next step; 0 when it is due."""
        return max(0.0, self._due - time.monotonic())

    def step(self) -> None:
        now = time.monotonic()
        behind = now - self._due > self._period
        self._due = (now if behind else self._due) + self._period
