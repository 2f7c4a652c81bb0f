"""Starts an engine's loop on the thread that will run it; torch is imported here first."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.engines.port import EngineStartError, StepFrame
from antiphon.engines.torch.inbox import Inbox
from antiphon.engines.torch.options import EngineOptions
from antiphon.errors import StartupError

if TYPE_CHECKING:
    from antiphon.engines.torch.loop import EngineLoop


def start_loop(
    options: EngineOptions, inbox: Inbox, emit: Callable[[StepFrame], None]
) -> EngineLoop:
    """The loop, loaded. Raises ``EngineStartError`` of one line, whatever went wrong."""
    try:
        return _load(options, inbox, emit)
    except BaseException as failure:
        if isinstance(failure, EngineStartError | StartupError):
            raise EngineStartError(" ".join(str(failure).split())) from failure
        raise EngineStartError(f"{options.files.path} cannot be loaded: {failure!r}") from failure


def _load(options: EngineOptions, inbox: Inbox, emit: Callable[[StepFrame], None]) -> EngineLoop:
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    # Threads that spin while they wait slow each other on busy cores, up to three times (measured).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # torch reads the variables when it is imported, which happens here for the first time.
    try:
        from antiphon.engines.torch.load import load
    except Exception as failure:  # a broken installation raises what it likes
        raise EngineStartError(f"torch cannot be imported: {failure}") from failure
    return load(options, inbox, emit)
