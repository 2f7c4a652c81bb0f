"""Our forward pass alone: decoder, logits, likeliest token. No scheduler, sampler or frame.

What the engine loses on the way from this to its frames is the difference to ``ours``. Building a
step's tensors is not part of it either.
"""

from __future__ import annotations

import time
from array import array

import torch
from benchmarks.engine.loads import NotMeasured, Sizes, Task, Timing, prompt, rate
from benchmarks.engine.ours import options

from antiphon.engines.port import EngineRequest
from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.inbox import Inbox
from antiphon.engines.torch.load import load
from antiphon.engines.torch.pages import PageTable, pages_for
from antiphon.engines.torch.runner import Runner
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Chunk


class Bare:
    """A decoder and its cache, driven by hand."""

    def __init__(self, model: str | None, weights: str) -> None:
        engine = load(options(model, weights), Inbox(), lambda _frame: None)
        if not isinstance(engine.runner, Runner):
            raise NotMeasured("the engine has another runner")
        self._runner = engine.runner
        self._step_tokens = engine.scheduler.step_tokens
        self._context = engine.info.context_length

    @torch.inference_mode()
    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        if task == "turns":
            raise NotMeasured("a forward pass finds no prefix")
        if task == "prefill":
            (one,) = self._sequences(1, sizes.prefill, 1, number)
            seconds = 0.0
            while one.cached < sizes.prefill:
                count = min(self._step_tokens, sizes.prefill - one.cached)
                seconds += self._forward([one], count)
            return rate(sizes.prefill, seconds)
        streams = 1 if task == "single" else sizes.streams
        rows = self._sequences(streams, sizes.prompt, sizes.decode, number)
        first = sum(self._forward([row], sizes.prompt) for row in rows)
        seconds = sum(self._forward(rows, 1) for _ in range(sizes.decode - 1))
        if task == "single":
            return rate(sizes.decode - 1, seconds)
        return rate(streams * sizes.decode, first + seconds)

    def _sequences(self, count: int, length: int, output: int, number: int) -> list[Sequence]:
        """With pages for prompt and output, each its own."""
        if length + output > self._context:
            raise NotMeasured(f"the model's context is {self._context} tokens")
        made, pages = [], pages_for(length + output)
        for row in range(count):
            request = EngineRequest(
                key=row, id="", group=row, model="", max_tokens=output, temperature=0.0,
                prompt=array("I", prompt(length, number, row)),
            )  # fmt: skip
            sequence = Sequence.of(request, self._context, frozenset())
            sequence.table = PageTable()
            sequence.table.pages.extend(range(row * pages, (row + 1) * pages))
            made.append(sequence)
        return made

    def _forward(self, rows: list[Sequence], count: int) -> float:
        """Read so many more tokens of each row, add the likeliest ones; the seconds of it."""
        decoder, cache = self._runner.decoder, self._runner.cache
        chunks = [Chunk(row, row.cached, count) for row in rows]
        batch = build_batch(
            attention_groups(chunks, torch.device("cpu")),
            drawing=chunks,
            heads_per_key=decoder.config.heads // decoder.config.kv_heads,
            window=decoder.config.sliding_window,
            padding_page=cache.padding_page,
            dtype=decoder.weights.embedding.dtype,
            device=decoder.weights.embedding.device,
        )
        began = time.perf_counter()
        states = decoder(batch, cache)
        tokens = list[int]()
        if len(batch.drawing):
            tokens = decoder.logits(states[batch.drawing]).argmax(-1).tolist()
        seconds = time.perf_counter() - began
        for row in rows:
            row.cached += count
        for row, token in zip(rows, tokens, strict=False):
            row.ids.append(token)
        return seconds
