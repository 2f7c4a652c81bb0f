"""``antiphon serve`` in a process of its own, and what its metrics say."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import attrs
import httpx
from anyio.streams.buffered import BufferedByteReceiveStream
from prometheus_client.parser import text_string_to_metric_families

START_S = 120
END_S = 30
REST_S = 20


@attrs.frozen
class Rest:
    """What the server still has in hand."""

    running: int
    waiting: int
    held: int
    """Pages that a sequence holds."""
    cached: int
    free: int
    failed: int
    """Answers that began and failed, since the start."""
    restarts: int
    """Times that the engine died and was started again."""

    @property
    def idle(self) -> bool:
        """Nothing runs, waits or holds a page."""
        return not (self.running or self.waiting or self.held)


@asynccontextmanager
async def served(model: str | None, options: Sequence[str]) -> AsyncIterator[str]:
    """The address of a server of the model; it is ended by a signal, and must end well.

    Raises ``RuntimeError`` if it does not start.
    """
    command = [sys.executable, "-m", "antiphon", "serve", "--engine", "torch", "--port", "0"]
    command += [*options, *([] if model is None else [model])]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    async with await anyio.open_process(command, env=env, stderr=None) as process:
        assert process.stdout is not None
        try:
            with anyio.fail_after(START_S):
                address = await _address(BufferedByteReceiveStream(process.stdout))
            yield address
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(END_S):
                status = await process.wait()
            if status:
                raise RuntimeError(f"the server ended with the status {status}")
        finally:
            if process.returncode is None:
                process.kill()


async def _address(lines: BufferedByteReceiveStream) -> str:
    while True:
        try:
            line = (await lines.receive_until(b"\n", 10_000)).decode()
        except anyio.IncompleteRead as failure:
            raise RuntimeError("the server did not start") from failure
        if line.startswith("Address"):
            return line.split()[1]


async def rest(client: httpx.AsyncClient) -> Rest:
    """The metrics now."""
    text = (await client.get("/metrics")).text
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, sample.labels.get("state", "")
            found[key] = found.get(key, 0) + sample.value

    def number(name: str, state: str = "") -> int:
        return int(found.get((f"antiphon_{name}", state), 0))

    return Rest(
        running=number("requests_running"),
        waiting=number("requests_waiting"),
        held=number("kv_pages", "held"),
        cached=number("kv_pages", "cached"),
        free=number("kv_pages", "free"),
        failed=number("failed_responses_total"),
        restarts=number("engine_restarts_total"),
    )


async def at_rest(client: httpx.AsyncClient) -> Rest:
    """The metrics once the server is idle, or after ``REST_S`` seconds."""
    until = anyio.current_time() + REST_S
    while not (now := await rest(client)).idle and anyio.current_time() < until:  # noqa: ASYNC110
        await anyio.sleep(0.02)
    return now
