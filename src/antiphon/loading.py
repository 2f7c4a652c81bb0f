"""From settings to an engine that is ready and the models it serves.

What takes its time is done in threads, and a thread cannot be stopped: whoever does not want to
wait for a load any longer leaves it behind.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from anyio import to_thread

from antiphon.config import DEFAULT_FIXTURES, Config
from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineInfo, EnginePort, EngineStartError
from antiphon.engines.recording import Recording, load_recordings
from antiphon.engines.replay import ReplayEngine
from antiphon.engines.supervisor import Supervisor
from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles, resolve
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.replay_prompter import ReplayPrompter
from antiphon.prompting.unasked_thought import thinks_unasked
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.model_formats import formats_of
from responsory.segments import Spec, family

Loaded: TypeAlias = tuple[EnginePort, list[ServedModel], ServedModel]
"""An engine, the models it serves, and the one to try first."""

_in_thread = partial(to_thread.run_sync, abandon_on_cancel=True)


async def load(config: Config, restarted: Callable[[], None] = lambda: None) -> Loaded:
    """The engine that the settings ask for, started. Raises ``StartupError``.

    ``restarted`` is called whenever it has been started again.
    """
    try:
        if config.engine == "replay":
            return await load_replay(config)
        return await load_torch(config, restarted)
    except EngineStartError as error:
        raise StartupError(str(error)) from None


async def load_torch(config: Config, restarted: Callable[[], None]) -> Loaded:
    """The torch engine with one model under each of its public names."""
    files = await _in_thread(resolve, config.model)
    prompter = await _in_thread(TextPrompter.load, files)
    vocabulary = await _in_thread(prompter.table.to_text)
    engine = torch_engine(config, files, restarted, vocabulary)
    formats = await _in_thread(
        partial(
            formats_of,
            prompter,
            tool_format=config.tool_format,
            reasoning_format=config.reasoning_format,
        )
    )
    unasked = await _in_thread(thinks_unasked, prompter)
    info = await engine.start()
    if prompter.vocab_size > info.vocab_size:
        await engine.stop(0)
        raise StartupError(
            f"{files.path}: its tokenizer has ids up to {prompter.vocab_size - 1}, and the model "
            f"has {info.vocab_size} tokens; the tokenizer is another model's."
        )
    created = int(time.time())
    models = [
        ServedModel(
            id=name,
            created=created,
            prompter=prompter,
            info=info,
            format=formats.spec(),
            format_of_calls=formats.spec(reasoning=False),
            format_when_forced=formats.forced(),
            thinks_unasked=unasked,
        )
        for name in config.served_model_name or (files.name,)
    ]
    return engine, models, models[0]


def torch_engine(
    config: Config,
    files: ModelFiles,
    restarted: Callable[[], None] = lambda: None,
    vocabulary: str | None = None,
) -> EnginePort:
    """The torch engine in a thread, or in a process that may be started again.

    ``vocabulary``: a ``TokenTable`` as text; without it no answer can be held to a form.
    """
    # A replay server needs nothing of it.
    from antiphon.engines.torch import TorchEngine
    from antiphon.engines.torch.child import torch_child
    from antiphon.engines.torch.guess import is_cuda
    from antiphon.engines.torch.options import EngineOptions

    options = EngineOptions(
        files=files,
        device=config.device,
        dtype=config.dtype,
        threads=config.threads,
        max_running=config.max_running,
        max_waiting=_queue(config),
        kv_bytes=config.kv_cache_bytes,
        step_tokens=config.step_tokens,
        weights=config.weights,
        prefix_cache=config.prefix_cache,
        vocabulary=vocabulary,
    )
    auto = config.engine_process == "auto" and is_cuda(config.device)
    if not (auto or config.asks_for_child):
        return TorchEngine(options)
    child = partial(torch_child, options, hang_s=config.engine_hang_timeout)
    return child() if config.engine_restart is False else Supervisor(child, restarted=restarted)


async def load_replay(config: Config) -> Loaded:
    """The replay engine with one model per recording."""
    recordings = await _in_thread(load_recordings, config.fixtures or DEFAULT_FIXTURES)
    try:
        pace = Pace.parse(config.pace)
    except ValueError as error:
        raise StartupError(f"--pace: {error}") from None
    engine = ReplayEngine(recordings, pace=pace, max_waiting=_queue(config))
    info = await engine.start()
    models = recorded_models(recordings, info, int(time.time()))
    example = next((model for model in models if recordings[model.id].answers), models[0])
    return engine, models, example


def _queue(config: Config) -> int:
    """Calls that may wait in the engine: never fewer than sequences are let in by the server."""
    return config.max_waiting or sys.maxsize


def recorded_models(
    recordings: Mapping[str, Recording], info: EngineInfo, created: int
) -> list[ServedModel]:
    """A model for each recording. Raises ``StartupError`` for a family that is not known."""
    return [
        ServedModel(
            id=name,
            created=created,
            prompter=ReplayPrompter(
                recording.prompt_tokens, recording.tokenizer, turns=recording.turns
            ),
            info=info,
            format=_format(recording),
            format_of_calls=_format(recording, reasoning=False),
        )
        for name, recording in recordings.items()
    ]


def _format(recording: Recording, *, reasoning: bool = True) -> Spec:
    """How its family marks reasoning and calls; ``reasoning`` False: calls alone.

    Raises ``StartupError`` for a family that is not known.
    """
    try:
        return family(recording.family, reasoning=reasoning)
    except KeyError as error:
        raise StartupError(f"{recording.name}: {error.args[0]}") from None
