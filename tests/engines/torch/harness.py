"""Engines for tests on tiny models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import torch

from antiphon.engines.port import StepFrame
from antiphon.engines.torch import TorchEngine
from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.inbox import Inbox
from antiphon.engines.torch.load import load
from antiphon.engines.torch.loop import EngineLoop
from antiphon.engines.torch.options import EngineOptions
from antiphon.engines.torch.pages import PageTable
from antiphon.engines.torch.runner import Runner
from antiphon.engines.torch.sequence import Sequence as EngineSequence
from antiphon.engines.torch.step import Chunk
from antiphon.models.files import ModelFiles
from engines.frame_watch import FrameWatch
from engines.torch.reference import Array
from engines.torch.requests import a_request


def loaded(files: ModelFiles, **settings: Any) -> EngineLoop:
    """An engine that no thread runs, in float32 unless told."""
    options: dict[str, Any] = {"dtype": "float32", "device": "cpu", "kv_bytes": 2**22} | settings
    return load(EngineOptions(files=files, **options), Inbox(), lambda frame: None)


def engine_logits(engine: EngineLoop, ids: Sequence[int], chunks: Sequence[int]) -> Array:
    """[len(ids), vocab]: the sequence read in chunks of the given lengths through the cache."""
    runner = engine.runner
    assert isinstance(runner, Runner)
    table = PageTable()
    # Pages out of order: an engine that confuses a page with its place is found out.
    table.pages.extend(range(len(ids) // 16, -1, -1))
    sequence = EngineSequence.of(a_request(1, ids), engine.info.context_length, frozenset())
    sequence.table = table
    rows, config = [], runner.decoder.config
    assert sum(chunks) == len(ids)
    for count in chunks:
        groups = attention_groups([Chunk(sequence, sequence.cached, count)], torch.device("cpu"))
        batch = build_batch(
            groups,
            heads_per_key=config.heads // config.kv_heads,
            window=config.sliding_window,
            padding_page=runner.cache.padding_page,
            dtype=runner.decoder.weights.embedding.dtype,
            device=torch.device("cpu"),
        )
        with torch.inference_mode():
            rows.append(runner.decoder.logits(runner.decoder(batch, runner.cache)))
        sequence.cached += count
    result: Array = torch.cat(rows).double().numpy()
    return result


async def no_frames() -> AsyncIterator[StepFrame]:
    """For a watch that is given its frames one by one."""
    for frame in list[StepFrame]():
        yield frame


@asynccontextmanager
async def running(
    files: ModelFiles, **settings: Any
) -> AsyncIterator[tuple[TorchEngine, FrameWatch]]:
    """A started engine in float32 and the reader of its frames."""
    engine = TorchEngine(
        EngineOptions(files=files, **({"dtype": "float32", "device": "cpu"} | settings))
    )
    await engine.start()
    watch = FrameWatch(engine.frames())
    yield engine, watch
    await engine.stop(0)
    if not watch.ended:
        await watch.end()
