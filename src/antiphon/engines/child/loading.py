"""Whether an engine that loads still works at it: it has no turns to answer with.

Large models load for minutes, so the time says little. A load that stands still, because its
process is stopped or its threads wait for each other, uses no processor time. One that is slow uses
some.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from antiphon.engines.clock import Clock

SECOND_NS = 1_000_000_000
LOOK_S = 30.0
"""Between two looks at what it has worked."""
STILL_LOOKS = 4
"""Looks in a row without any work after which it is taken for dead: two minutes."""
BLIND_LOOKS = 60
"""Looks that a whole load may take where the system does not tell what it works: half an hour."""


async def stalled(clock: Clock, worked: Callable[[], int | None], *, least_s: float) -> str:
    """Return once it stands still, with what is wrong in words.

    ``worked`` tells what it has worked so far, in any unit, or None where that is not known. It
    never gets less than ``least_s`` seconds. Looks are counted, and not the time that has passed:
    after a pause of our own it gets its time all the same.
    """
    look_s = max(LOOK_S, least_s / STILL_LOOKS)
    never = anyio.Event()
    still = blind = 0
    before = worked()
    while True:
        await clock.wait(never, clock.now_ns() + int(look_s * SECOND_NS))
        now = worked()
        blind += now is None
        still = still + 1 if now is not None and now == before else 0
        before = now
        if still == STILL_LOOKS:
            return f"it has used no processor time for {still * look_s:g} s"
        if blind == BLIND_LOOKS:
            return f"it has not loaded in {blind * look_s:g} s"
