"""The shared contract of engines, kept by the replay engine on the real clock and flat out."""

from __future__ import annotations

from array import array

import pytest

from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineRequest
from antiphon.engines.replay import ReplayEngine
from antiphon.engines.replay_schedule import CONTEXT_LENGTH
from engines.contract import EngineContract, EngineRig
from engines.replay.builders import ManualClock, recording, request, said

SHORT = recording(*said("a", "b", "c"), ["finish", 0, "stop"], name="plain/short")
ENDLESS = recording(*said(*("x" * 20_000)), ["hold"], name="plain/endless")
RECORDINGS = {made.name: made for made in (SHORT, ENDLESS)}


class TestReplayContract(EngineContract):
    @pytest.fixture
    def rig(self) -> EngineRig:
        # Flat out no wait depends on the time, so the clock can stand still; broken it kills.
        clock = ManualClock()

        def kill() -> None:
            clock.fails = True

        def over_long(key: int) -> EngineRequest:
            return request(key, SHORT.name, prompt=array("I", bytes(4 * CONTEXT_LENGTH)))

        return EngineRig(
            port=ReplayEngine(RECORDINGS, pace=Pace.FULL, clock=clock),
            short=lambda key: request(key, SHORT.name),
            endless=lambda key: request(key, ENDLESS.name, max_tokens=10**6),
            over_long=over_long,
            kill=kill,
        )


class TestReplayContractRecorded(EngineContract):
    """At the recorded pace, a tenth of a millisecond a step, by the system's clock."""

    @pytest.fixture
    def rig(self) -> EngineRig:
        short = recording(*said("a", "b", every_ms=0.1), ["finish", 0, "stop"], name=SHORT.name)
        endless = recording(*said(*("x" * 200), every_ms=0.1), ["hold"], name=ENDLESS.name)
        return EngineRig(
            port=ReplayEngine({short.name: short, endless.name: endless}),
            short=lambda key: request(key, SHORT.name),
            endless=lambda key: request(key, ENDLESS.name, max_tokens=10**6),
        )
