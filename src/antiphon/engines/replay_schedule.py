"""Which replayed requests wait, play and end, and what each frame says. No I/O, no clock."""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Mapping, Sequence

from antiphon.engines.frame_builder import FrameBuilder
from antiphon.engines.pace import Pace
from antiphon.engines.playback import Playback
from antiphon.engines.port import EngineError, EngineRequest, Finish, Gauges, StepFrame
from antiphon.engines.recording import Recording

CONTEXT_LENGTH = 2**20

log = logging.getLogger(__name__)


class ReplaySchedule:
    """The requests of a replay engine, from submission to their terminal row.

    The queue is bounded in calls (requests that share a ``group``, submitted one after another):
    ``max_waiting`` of them may wait, whole or in part. A call is taken or refused as its first
    request is.

    Every request passes from ``waiting`` to ``running`` (its accept row) and ends there, or is put
    among the ``ending``, whose terminal rows open the next frame. Those that wait are in order of
    priority, the lower number first, and of arrival among equals.
    """

    def __init__(
        self, recordings: Mapping[str, Recording], pace: Pace, max_running: int, max_waiting: int
    ) -> None:
        self._recordings = recordings
        self._pace = pace
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._latest_call: tuple[int, bool] | None = None
        """The group of the latest request, and whether its call is taken."""
        self._waiting: list[EngineRequest] = []
        self._running: dict[int, Playback] = {}
        self._ending: dict[int, tuple[Finish, EngineError | None]] = {}
        self._next_step = 0
        self.closed: EngineError | None = None
        """Why new requests are refused; None while they are taken."""

    @property
    def busy(self) -> bool:
        """Whether a terminal row is still owed to anyone."""
        return bool(self._waiting or self._running or self._ending)

    @property
    def next_due_ns(self) -> int | None:
        """When the next row is due, as far as only time is missing."""
        due = [playback.due_ns for playback in self._running.values()]
        return min((moment for moment in due if moment is not None), default=None)

    def submit(self, request: EngineRequest) -> None:
        """Let the request wait, or let it end with the refusal."""
        waits = any(request.key == queued.key for queued in self._waiting)
        if waits or request.key in self._running or request.key in self._ending:
            # A second terminal row for this key would be worse than none for this request.
            log.error("request %s reuses the open key %d and is ignored", request.id, request.key)
        elif (error := self._refusal(request)) is not None:
            self._ending[request.key] = (Finish.ERROR, error)
        else:
            insort(self._waiting, request, key=lambda queued: queued.priority)

    def abort(self, keys: Sequence[int]) -> None:
        """End these; those that are not open are ignored."""
        self._end(keys, Finish.ABORT, None)

    def abort_all(self) -> None:
        """End all that is open."""
        self._end(self._open_keys(), Finish.ABORT, None)

    def fail_all(self, error: EngineError) -> None:
        """End all that is open with ``error``, and refuse what comes later with it."""
        self.closed = error
        self._end(self._open_keys(), Finish.ERROR, error)

    def step(self, now_ns: int) -> StepFrame | None:
        """All rows due at ``now_ns``, at most one per request; None if there are none."""
        frame = FrameBuilder(step=self._next_step)
        for key, (finish, error) in self._ending.items():
            frame.row(key, finish=finish, error=error)
        self._ending.clear()
        for key, playback in list(self._running.items()):
            due_ns = playback.due_ns
            if due_ns is not None and due_ns <= now_ns and playback.play(frame):
                del self._running[key]
        while self._waiting and len(self._running) < self._max_running:
            request = self._waiting.pop(0)
            self._running[request.key] = self._playback(request, now_ns)
            frame.row(request.key)
        if not len(frame):
            return None
        self._next_step += 1
        gauges = Gauges(running=len(self._running), waiting=len(self._waiting))
        return frame.build(now_ns, gauges)

    def _end(self, keys: Sequence[int], finish: Finish, error: EngineError | None) -> None:
        open_keys = set(self._open_keys())
        ending = [key for key in dict.fromkeys(keys) if key in open_keys]
        self._ending.update(dict.fromkeys(ending, (finish, error)))
        self._waiting = [one for one in self._waiting if one.key not in self._ending]
        for key in ending:
            self._running.pop(key, None)

    def _open_keys(self) -> list[int]:
        return [*(queued.key for queued in self._waiting), *self._running]

    def _refusal(self, request: EngineRequest) -> EngineError | None:
        if self.closed is not None:
            return self.closed
        if request.model not in self._recordings:
            return EngineError(code="unsupported", message=f"no recording {request.model!r}")
        if request.prompt_logprobs is not None:
            message = "prompt_logprobs is not supported: nobody recorded what the prompt scored"
            return EngineError(code="unsupported", message=message)
        if len(request.prompt) >= CONTEXT_LENGTH:
            message = f"{len(request.prompt)} prompt tokens leave no room in {CONTEXT_LENGTH}"
            return EngineError(code="context_length_exceeded", message=message)
        if not self._takes_call(request.group):
            return EngineError(code="engine_overloaded", message="too many calls are waiting")
        return None

    def _takes_call(self, group: int) -> bool:
        """Whether there is room for the call, decided at its first request."""
        if self._latest_call is None or self._latest_call[0] != group:
            # Those that the next step lets play do not wait.
            slots = self._max_running - len(self._running)
            waiting = {queued.group for queued in self._waiting[slots:]}
            room = len(self._waiting) < slots or len(waiting) < self._max_waiting
            self._latest_call = (group, room)
        return self._latest_call[1]

    def _playback(self, request: EngineRequest, now_ns: int) -> Playback:
        recording = self._recordings[request.model]
        turn = request.prompt[0] if recording.turns else 0
        return Playback(
            key=request.key,
            choice=recording.choice(request.choice, turn),
            pace=self._pace,
            start_ns=now_ns,
            max_tokens=min(request.max_tokens, CONTEXT_LENGTH - len(request.prompt)),
            logprobs=request.logprobs,
        )
