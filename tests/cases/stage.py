"""The server's way from a plan to the bytes of an answer, without sockets and without a clock.

The routes make the plan, in a true application that is asked once per endpoint; the replay engine's
schedule makes the frames, the fanout carries them to the logs, and the projections make the bytes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import attrs

from antiphon.api.service import Service
from antiphon.app import make_app, make_service, running
from antiphon.config import DEFAULTS, Config
from antiphon.engines.pace import Pace
from antiphon.engines.port import EngineInfo, EngineRequest, StepFrame
from antiphon.engines.recording import RecordedChoice, Recording
from antiphon.engines.replay import ReplayEngine
from antiphon.engines.replay_schedule import ReplaySchedule
from antiphon.loading import recorded_models
from antiphon.runs.fanout import Fanout
from antiphon.runs.plan import RunPlan
from antiphon.runs.run import Run
from cases.bodies import PATHS
from cases.folding import DONE

CLOCK = 1_764_500_000


@attrs.frozen
class Answered:
    """``frames`` of the stream, ``body`` as without one; ``refused``: why there is neither."""

    frames: Sequence[bytes]
    body: Mapping[str, Any] | None
    refused: Mapping[str, Any] | None = None


class Scheduled:
    """The replay engine's schedule as an engine that is stepped by hand."""

    def __init__(self, recordings: Mapping[str, Recording], info: EngineInfo) -> None:
        self.info = info
        self.schedule = ReplaySchedule(recordings, Pace.FULL, 64, 64)

    async def start(self) -> EngineInfo:
        return self.info

    def submit(self, request: EngineRequest) -> None:
        self.schedule.submit(request)

    def abort(self, keys: Sequence[int]) -> None:
        self.schedule.abort(keys)

    async def frames(self) -> AsyncIterator[StepFrame]:
        while (frame := self.schedule.step(0)) is not None:
            yield frame

    async def stop(self, grace_s: float) -> None:
        self.schedule.abort_all()


class Watching(Fanout):
    """Keeps each plan as it is before anything runs."""

    plan: RunPlan | None = None

    def open(self, plan: RunPlan) -> Run:
        self.plan = _fresh(plan)
        return super().open(plan)


class Stage:
    """``recordings`` by name are what is served, and may be changed between two answers."""

    def __init__(
        self, service: Service, recordings: dict[str, Recording], info: EngineInfo
    ) -> None:
        self.client = make_app(service).test_client()
        self._service = service
        self._recordings = recordings
        self._engine = Scheduled(recordings, info)
        self._fanout = Fanout(self._engine, wall_s=lambda: CLOCK, monotonic_ns=lambda: 0)

    async def ask(self, endpoint: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and bytes of an answer over ASGI."""
        response = await self.client.post(PATHS[endpoint], json=dict(body))
        data: bytes = await response.get_data(as_text=False)
        return response.status_code, data

    async def plan(self, endpoint: str, body: Mapping[str, Any]) -> tuple[RunPlan | None, bytes]:
        """The plan that the route makes of the request; None if it makes none, and the answer."""
        fanout = self._service.fanout
        assert isinstance(fanout, Watching)
        fanout.plan = None
        _, data = await self.ask(endpoint, body)
        return fanout.plan, data

    async def play(self, plans: Sequence[RunPlan], choice: RecordedChoice) -> list[Answered]:
        """The answers to these plans of one model, where its engine delivers ``choice``."""
        (name,) = {plan.model.id for plan in plans}
        kept = self._recordings[name]
        self._recordings[name] = attrs.evolve(kept, choices=(choice,))
        try:
            runs = [self._fanout.open(_fresh(plan)) for plan in plans]
            async for frame in self._engine.frames():
                self._fanout.step(frame)
            return [await _answered(run) for run in runs]
        finally:
            self._recordings[name] = kept


def _fresh(plan: RunPlan) -> RunPlan:
    """The same with a projection of its own, which is to show nothing yet."""
    answer = attrs.evolve(plan.answer, stream=deepcopy(plan.answer.stream))
    return attrs.evolve(plan, answer=answer)


async def _answered(run: Run) -> Answered:
    assert run.ended
    if not run.frames or run.frames[-1] != DONE:
        assert not run.frames
        try:
            await run.opened()
        except Exception as refusal:  # whatever it is, it is what a client gets
            return Answered((), None, {"message": str(refusal)})
        raise AssertionError("an answer without bytes")
    body = None if run.failure is not None else run.plan.answer.body(run.logs)
    return Answered(run.frames, body)


@asynccontextmanager
async def stage(
    recordings: Mapping[str, Recording], config: Config = DEFAULTS
) -> AsyncIterator[Stage]:
    """The application over these recordings, running."""
    served = dict(recordings)
    engine = ReplayEngine(served, pace=Pace.FULL)
    info = await engine.start()
    service = make_service(engine, recorded_models(served, info, CLOCK), config)
    service.fanout = Watching(engine, wall_s=lambda: CLOCK, monotonic_ns=lambda: 0)
    async with running(service):
        yield Stage(service, served, info)


def streamed(endpoint: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks for a stream with all that the unary answer tells."""
    asked = {**body, "stream": True}
    if endpoint != "responses":
        asked.setdefault("stream_options", {"include_usage": True})
    return asked


def body_of(data: bytes) -> dict[str, Any]:
    """The JSON of an answer."""
    found: dict[str, Any] = json.loads(data)
    return found
