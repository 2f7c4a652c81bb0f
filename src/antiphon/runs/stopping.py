"""Stopping an engine, which may be in the midst of a step and cannot be interrupted there."""

from __future__ import annotations

import anyio

from antiphon.engines.port import EnginePort

STOP_S = 0.5
"""What an engine gets to stop once nothing is open any more."""


async def has_stopped(engine: EnginePort, consumed: anyio.Event, grace_s: float) -> bool:
    """Let the engine's requests end by themselves for ``grace_s`` seconds; with 0 abort them.

    Whether it has stopped by then (with 0: soon) and its last frame was ``consumed``.
    """
    with anyio.move_on_after(grace_s or STOP_S):
        await engine.stop(grace_s)
        await consumed.wait()
        return True
    return False
