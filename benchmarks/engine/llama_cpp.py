"""llama.cpp's server, through its binding xllamacpp: no HTTP, and its own timings."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from benchmarks.engine.loads import NotMeasured, Sizes, Task, Timing, prompt, rate, sooner

from antiphon.models.files import resolve

CONTEXT = 1_024
"""Tokens of each of its slots."""


class LlamaCpp:
    """One thread, eight slots, batching of what runs at the same time."""

    def __init__(self, model: str | None) -> None:
        files = resolve(model)
        if files.kind != "gguf":
            raise NotMeasured("it reads GGUF files only")
        try:
            xllamacpp: Any = import_module("xllamacpp")
        except ImportError as failure:
            raise NotMeasured(f"xllamacpp is not installed: {failure}") from failure
        params = xllamacpp.CommonParams()
        params.model.path = str(files.path)
        params.n_ctx = 8 * CONTEXT
        params.n_parallel = 8
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.cont_batching = True
        self._server: Any = xllamacpp.Server(params)

    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        if task == "single":
            told = self._ask(prompt(sizes.prompt, number), sizes.decode)["timings"]
            # It counts the first token and not the time until it.
            return rate(told["predicted_n"] - 1, told["predicted_ms"] / 1e3)
        if task == "eight":
            prompts = [prompt(sizes.prompt, number, stream) for stream in range(sizes.streams)]
            with ThreadPoolExecutor(sizes.streams) as pool:
                began = time.perf_counter()
                list(pool.map(lambda ids: self._ask(ids, sizes.decode), prompts))
                return rate(sizes.streams * sizes.decode, time.perf_counter() - began)
        first = prompt(sizes.prefill, task, number)
        if task == "prefill":
            told = self._ask(first, 1)["timings"]
            return rate(told["prompt_n"], told["prompt_ms"] / 1e3)
        answer = self._ask(first, sizes.answer, cache=True)
        # Without the answer, whose ids it does not tell: a little less to read.
        second = self._ask([*first, *prompt(sizes.prompt, "second")], 1, cache=True)
        return sooner(answer["timings"]["prompt_ms"] / 1e3, second["timings"]["prompt_ms"] / 1e3)

    def _ask(self, ids: list[int], count: int, *, cache: bool = False) -> Any:
        answer = self._server.handle_completions(
            {
                "prompt": ids,
                "n_predict": count,
                "ignore_eos": True,
                "temperature": 0,
                "cache_prompt": cache,
            }
        )
        if "timings" not in answer:
            raise RuntimeError(f"llama.cpp refused: {answer}")
        return answer

    def close(self) -> None:
        """Its threads end with the process."""
