"""The shared contract of engines, kept by the replay engine flat out and on the real clock."""

from __future__ import annotations

from array import array

import attrs
import pytest

from antiphon.engines.clock import MonotonicClock
from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineRequest
from antiphon.engines.recording import Recording
from antiphon.engines.replay import ReplayEngine
from antiphon.engines.replay_schedule import CONTEXT_LENGTH
from engines.contract import EngineContract
from engines.replay.builders import ManualClock, recording, request, said
from engines.rig import EngineRig

SHORT, ENDLESS = "plain/short", "plain/endless"


@attrs.define
class BreakableClock(MonotonicClock):
    """The system's clock until it fails, once."""

    fails: bool = False

    def now_ns(self) -> int:
        if self.fails:
            self.fails = False
            raise RuntimeError("the clock is broken")
        return super().now_ns()


def over_long(key: int) -> EngineRequest:
    return request(key, SHORT, prompt=array("I", bytes(4 * CONTEXT_LENGTH)))


def a_rig(
    short: Recording, endless: Recording, pace: Pace, clock: ManualClock | BreakableClock
) -> EngineRig:
    """A broken clock kills the engine."""

    def kill() -> None:
        clock.fails = True

    return EngineRig(
        port=ReplayEngine(
            {SHORT: short, ENDLESS: endless}, pace=pace, max_running=4, max_waiting=20, clock=clock
        ),
        short=lambda key: request(key, SHORT),
        endless=lambda key: request(key, ENDLESS, max_tokens=10**6),
        over_long=over_long,
        kill=kill,
    )


class TestReplayContract(EngineContract):
    @pytest.fixture
    def rig(self) -> EngineRig:
        short = recording(*said("a", "b", "c"), ["finish", 0, "stop"], name=SHORT)
        endless = recording(*said(*("x" * 20_000)), ["hold"], name=ENDLESS)
        # Flat out no wait depends on the time, so the clock can stand still.
        return a_rig(short, endless, Pace.FULL, ManualClock())


class TestReplayContractRecorded(EngineContract):
    """At the recorded pace, a tenth of a millisecond a step, by the system's clock."""

    @pytest.fixture
    def rig(self) -> EngineRig:
        short = recording(*said("a", "b", every_ms=0.1), ["finish", 0, "stop"], name=SHORT)
        endless = recording(*said(*("x" * 200), every_ms=0.1), ["hold"], name=ENDLESS)
        return a_rig(short, endless, Pace.RECORDED, BreakableClock())
