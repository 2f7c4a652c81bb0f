"""Our engine through its port: requests in, frames out, as the server has it."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Sequence
from typing import get_args

import attrs
from benchmarks.engine.loads import NotMeasured, Sizes, Task, Timing, prompt, rate, sooner

from antiphon.engines.port import EnginePort, EngineRequest, Finish, GrammarSpec
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.child import torch_child
from antiphon.engines.torch.options import EngineOptions, Weights
from antiphon.models.files import resolve


def options(model: str | None, weights: str, max_running: int = 8) -> EngineOptions:
    """One thread, and otherwise what the server does by itself."""
    form: Weights = next(one for one in get_args(Weights) if one == weights)
    return EngineOptions(files=resolve(model), threads=1, max_running=max_running, weights=form)


@attrs.define
class Answer:
    """The tokens of a request, and when each was read from its frame."""

    tokens: list[int] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)


class Ours:
    """An engine whose thread runs beside the event loop that reads its frames."""

    form: GrammarSpec | None = None
    """What every answer is held to."""

    def __init__(self, model: str | None, weights: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._engine = self._make(options(model, weights))
        info = self._loop.run_until_complete(self._engine.start())
        self._context = info.context_length
        self._frames = self._engine.frames()
        self._key = 0

    def _make(self, settings: EngineOptions) -> EnginePort:
        return TorchEngine(settings)

    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        return self._loop.run_until_complete(self._measure(task, sizes, number))

    async def _measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        salt = f"{task} {number}".encode()  # nobody finds the pages of another task or round
        if task == "single":
            (answer,), _ = await self._ask([prompt(sizes.prompt, number)], sizes.decode, salt)
            return rate(sizes.decode - 1, answer.times[-1] - answer.times[0])
        if task == "eight":
            prompts = [prompt(sizes.prompt, number, stream) for stream in range(sizes.streams)]
            answers, began = await self._ask(prompts, sizes.decode, salt)
            return rate(sizes.streams * sizes.decode, max(one.times[-1] for one in answers) - began)
        first = prompt(sizes.prefill, task, number)
        if task == "prefill":
            (answer,), began = await self._ask([first], 1, salt)
            return rate(sizes.prefill, answer.times[0] - began)
        (answer,), began = await self._ask([first], sizes.answer, salt)
        second = [*first, *answer.tokens, *prompt(sizes.prompt, "second")]
        (later,), began_again = await self._ask([second], 1, salt)
        return sooner(answer.times[0] - began, later.times[0] - began_again)

    async def _ask(
        self, prompts: Sequence[list[int]], count: int, salt: bytes
    ) -> tuple[list[Answer], float]:
        """All at once, to their ends; and the moment before the first was submitted."""
        if max(map(len, prompts)) + count > self._context:
            raise NotMeasured(f"the model's context is {self._context} tokens")
        answers: dict[int, Answer] = {}
        began = time.perf_counter()
        for ids in prompts:
            self._key += 1
            answers[self._key] = Answer()
            self._engine.submit(
                EngineRequest(
                    key=self._key, id=f"{self._key}-0", group=self._key, model="",
                    prompt=array("I", ids), max_tokens=count, temperature=0.0, ignore_eos=True,
                    cache_salt=salt, grammar=self.form,
                )
            )  # fmt: skip
        open_keys = set(answers)
        while open_keys:
            frame = await anext(self._frames)
            now, at = time.perf_counter(), 0
            for key, new, finish in zip(frame.key, frame.n_new, frame.finish, strict=True):
                answers[key].tokens += frame.token[at : at + new]
                answers[key].times += [now] * new
                at += new
                if finish == Finish.ERROR:
                    raise RuntimeError(f"the engine refused: {frame.error}")
                if finish:
                    open_keys.remove(key)
        return list(answers.values()), began

    def close(self) -> None:
        """End the engine's thread."""
        self._loop.run_until_complete(self._engine.stop(0))


class OursApart(Ours):
    """The same engine in a process of its own, which has the interpreter for itself."""

    def _make(self, settings: EngineOptions) -> EnginePort:
        return torch_child(settings)
