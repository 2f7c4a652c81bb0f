"""Builders for replay tests: recordings, requests, and a clock that only tests move."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

import anyio
import attrs

from antiphon.engines.port import EngineRequest, Finish, StepFrame
from antiphon.engines.recording import Recording, parse_recording
from engines.frame_watch import HANG_GUARD_S

MS = 1_000_000

HEADER = {
    "format": 1,
    "source": "handmade",
    "model": "m",
    "tokenizer": "opaque",
    "prompt_tokens": 3,
}


def lines(*rows: object, **header: object) -> str:
    """The text of a recording: HEADER with ``header`` laid over it, then the rows."""
    return "".join(json.dumps(row) + "\n" for row in [{**HEADER, **header}, *rows])


def recording(*rows: object, name: str = "plain/test", **header: Any) -> Recording:
    return parse_recording(name, lines(*rows, **header), "test.jsonl")


def said(*tokens: str, choice: int = 0, every_ms: float = 10) -> list[object]:
    """One token a step, the first at ``every_ms``; the id is the token's place."""
    return [
        [(place + 1) * every_ms, choice, [place], token, None] for place, token in enumerate(tokens)
    ]


def entry(token: str, data: bytes | None = None, *top: str) -> dict[str, object]:
    """A logprobs entry at -0.5, with alternatives ``top`` at -1, -2, …"""
    spelled = token.encode() if data is None else data
    candidates = [
        {"token": other, "logprob": -1.0 - place, "bytes": list(other.encode())}
        for place, other in enumerate(top)
    ]
    return {"token": token, "logprob": -0.5, "bytes": list(spelled), "top": candidates}


def request(key: int = 1, model: str = "plain/test", **fields: Any) -> EngineRequest:
    base = EngineRequest(
        key=key,
        id=f"t{key}-0",
        group=key,
        model=model,
        prompt=array("I", [1, 2, 3]),
        max_tokens=1000,
    )
    return attrs.evolve(base, **fields)


@attrs.define
class ManualClock:
    """Stands still until ``advance``."""

    ns: int = 0
    fails: bool = False
    """Whether the next reading raises: the death of whoever relies on it."""
    _sleepers: list[tuple[int, anyio.Event]] = attrs.field(factory=list)

    def now_ns(self) -> int:
        if self.fails:
            self.fails = False
            raise RuntimeError("the clock is broken")
        return self.ns

    async def wait(self, event: anyio.Event, until_ns: int | None) -> None:
        if event.is_set() or (until_ns is not None and until_ns <= self.ns):
            return
        over = anyio.Event()
        if until_ns is not None:
            self._sleepers.append((until_ns, over))
        async with anyio.create_task_group() as tasks:

            async def first(of: anyio.Event) -> None:
                await of.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(first, event)
            tasks.start_soon(first, over)

    async def parked(self, until_ns: int) -> None:
        """Return once somebody waits for this very moment.

        ``advance`` cannot know who is about to wait because of bytes that are still on their way.
        """
        with anyio.fail_after(HANG_GUARD_S):
            while all(moment != until_ns for moment, _ in self._sleepers):  # noqa: ASYNC110
                await anyio.sleep(0.001)  # others need the core

    async def advance(self, ns: int) -> None:
        """Let all tasks run, then time pass, then all tasks run again."""
        await settled()
        self.ns += ns
        for moment, over in self._sleepers:
            if moment <= self.ns:
                over.set()
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self.ns]
        await settled()


async def settled() -> None:
    """Return once no task has anything to do but wait.

    A task that has just ended tells its group by a callback, which no look at the tasks shows: each
    look is a turn of the event loop after the one before.
    """
    for _ in range(4):
        await anyio.wait_all_tasks_blocked()


Rows = list[tuple[int, list[int], Finish, str | None]]


def rows(frame: StepFrame) -> Rows:
    """(key, ids, finish, text) of every row."""
    out, offset = [], 0
    for row, key in enumerate(frame.key):
        ids = list(frame.token[offset : offset + frame.n_new[row]])
        offset += frame.n_new[row]
        out.append((key, ids, Finish(frame.finish[row]), frame.text.get(row)))
    return out


def all_rows(frames: Sequence[StepFrame]) -> Rows:
    return [row for frame in frames for row in rows(frame)]
