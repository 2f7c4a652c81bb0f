"""Where the time of our step goes: the stages by a clock, the operators by torch's profiler."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.engine.loads import Sizes, prompt
from benchmarks.engine.ours import options
from torch.profiler import ProfilerActivity, profile

from antiphon.engines.port import EngineRequest
from antiphon.engines.torch import runner as runner_module
from antiphon.engines.torch.inbox import Inbox, Submit
from antiphon.engines.torch.load import load
from antiphon.engines.torch.loop import EngineLoop

KINDS = (
    ("matrices", ("mm", "linear", "matmul", "pack", "qlinear", "gemm")),
    ("attention and its cache", ("attention", "softmax", "index", "gather")),
    ("norms, rotation, activation", ("norm", "mul", "add", "silu", "neg", "cat", "roll", "div")),
)
"""The first whose fragment is in an operator's name has it."""
REST = "other operators"
PROFILED = 16
"""Steps under torch's profiler, which takes long to add up more of them."""


class Clocked:
    """A decoder whose calls are clocked."""

    def __init__(self, decoder: Any, clock: Clock) -> None:
        self._decoder = decoder
        self.logits = clock.around("logits", decoder.logits)
        self._forward = clock.around("layers", decoder.__call__)

    def __call__(self, *arguments: Any) -> Any:
        return self._forward(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)


class Clock:
    """Seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time added to the name's."""

        def clocked(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds[name] += time.perf_counter() - began

        return clocked


def tables(model: str | None, weights: str, sizes: Sizes) -> Iterator[str]:
    """Markdown: one stream, many, and a prompt."""
    engine: Any = load(options(model, weights), Inbox(), lambda _frame: None)
    clock = _attach(engine)
    for title, streams, length, count in (
        ("one stream", 1, sizes.prompt, sizes.decode),
        (f"{sizes.streams} streams", sizes.streams, sizes.prompt, sizes.decode),
        (f"a prompt of {sizes.prefill} tokens", 1, sizes.prefill, 1),
    ):
        _run(engine, streams, length, count, "warm-up", title)
        clock.seconds.clear()
        steps, seconds = _run(engine, streams, length, count, "clocked", title)
        stages = dict(clock.seconds)
        with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
            _run(engine, streams, length, min(count, PROFILED), "profiled", title)
        yield from _table(title, steps, seconds, stages, _operators(profiler))


def _attach(engine: Any) -> Clock:
    clock = Clock()
    runner, scheduler = engine.runner, engine.scheduler
    runner.decoder = Clocked(runner.decoder, clock)
    runner.sampler.sample = clock.around("sampler", runner.sampler.sample)
    scheduler.schedule = clock.around("scheduler", scheduler.schedule)
    scheduler.book = clock.around("scheduler", scheduler.book)
    module: Any = runner_module
    module.build_batch = clock.around("tensors of the step", module.build_batch)
    runner.launch = clock.around("launch", runner.launch)
    return clock


def _run(
    engine: EngineLoop, streams: int, length: int, count: int, *salt: str
) -> tuple[int, float]:
    """Steps and seconds; steps that read prompts of many streams are among them."""
    for key in range(streams):
        request = EngineRequest(
            key=key, id="", group=key, model="", prompt=array("I", prompt(length, key)),
            max_tokens=count, temperature=0.0, ignore_eos=True, cache_salt=repr(salt).encode(),
        )  # fmt: skip
        engine.inbox.put(Submit(request))
    steps, began = 0, time.perf_counter()
    engine.turn()
    while engine.scheduler:
        engine.turn()
        steps += 1
    return steps + 1, time.perf_counter() - began


def _operators(profiler: Any) -> dict[str, float]:
    """Self time by kind, as shares of all operators."""
    found: dict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        name = event.key
        if "::" in name:
            kinds = (kind for kind, parts in KINDS if any(part in name for part in parts))
            found[next(kinds, REST)] += event.self_cpu_time_total
    whole = sum(found.values()) or 1.0
    return {kind: part / whole for kind, part in found.items()}


def _table(
    title: str, steps: int, seconds: float, stages: dict[str, float], operators: dict[str, float]
) -> Iterator[str]:
    inner = sum(stages.get(name, 0.0) for name in INSIDE)
    parts = {name: stages.get(name, 0.0) for name in (*INSIDE, "scheduler")}
    parts["the rest of the launch"] = stages["launch"] - inner
    parts["frames and the loop"] = seconds - stages["launch"] - parts["scheduler"]
    yield ""
    yield f"**{title}**: {steps} steps, {seconds / steps * 1e3:.2f} ms each"
    yield ""
    yield "| part | ms a step | share |"
    yield "|---|---|---|"
    for name, part in parts.items():
        yield f"| {name} | {part / steps * 1e3:.3f} | {part / seconds:.1%} |"
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in sorted(operators.items()))
    yield ""
    yield f"Operators, by torch's profiler, which slows small ones most: {shares}."


INSIDE = ("layers", "logits", "sampler", "tensors of the step")
"""What a launch consists of."""
