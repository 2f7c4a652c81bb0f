"""The process of the scripted engine: ``python -m benchmarks.serving.engine_process``.

Single-threaded and blocking, so that a step leaves when it is due and its time is taken just
before. A step that the server does not take yet is waited for: the engine falls behind then, and
never makes up for it by steps in quick succession, which would be cheaper for the server.
"""

from __future__ import annotations

import argparse
import select
import socket
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.serving.hand_off import ABORT, STOP, SUBMIT, commands, encode
from benchmarks.serving.script import Script
from benchmarks.serving.step_times import StepTimes

PATIENCE_NS = 250_000_000
"""How long those that wait go on waiting for others, after the latest has come."""


class Engine:
    """The script, played over a socket."""

    def __init__(self, link: socket.socket, times: StepTimes, step_ns: int, together: int) -> None:
        self._link = link
        self._times = times
        self._step_ns = step_ns
        self._together = together
        self._script = Script()
        self._rest = b""
        self._came_ns = 0
        self._due_ns = 0
        self._stop_ns: int | None = None

    def run(self) -> None:
        """Play until the server has gone, or until it has said so and nothing is open."""
        script = self._script
        while self._stop_ns is None or script.waiting or script.running:
            if not self._listen():
                return
            now = time.monotonic_ns()
            if self._stop_ns is not None and now >= self._stop_ns:
                script.abort_all()
            if (news := script.news(now)) is not None:
                self._link.sendall(encode(news))
            if script.waiting and self._all_are_here(now):
                self._due_ns = max(self._due_ns, now)
                script.begin()
            if script.running and now >= self._due_ns:
                self._step()

    def _all_are_here(self, now: int) -> bool:
        there = self._script.waiting + self._script.running
        return there >= self._together or now >= self._came_ns + PATIENCE_NS

    def _step(self) -> None:
        word = self._script.word
        frame = encode(self._script.step(time.monotonic_ns()))
        now = self._times[word] = time.monotonic_ns()
        self._link.sendall(frame)
        self._due_ns = max(self._due_ns + self._step_ns, now)

    def _listen(self) -> bool:
        """Take what commands come before something else is due; False: the server has gone."""
        if not select.select([self._link], [], [], self._wait_s())[0]:
            return True
        data = self._link.recv(65536)
        self._came_ns = time.monotonic_ns()
        known, self._rest = commands(self._rest + data)
        for kind, key, tokens in known:
            self._take(kind, key, tokens)
        return bool(data)

    def _take(self, kind: int, key: int, tokens: int) -> None:
        if kind == STOP:
            self._stop_ns = time.monotonic_ns() + tokens * 1_000_000
        elif kind == ABORT:
            self._script.abort(key)
        elif kind == SUBMIT and self._stop_ns is not None:
            self._script.refuse(key)
        else:
            self._script.submit(key, tokens)

    def _wait_s(self) -> float | None:
        """Seconds to the next thing that is due by itself; None if there is none."""
        moments = [] if self._stop_ns is None else [self._stop_ns]
        if self._script.running:
            moments.append(self._due_ns)
        if self._script.waiting:
            moments.append(self._came_ns + PATIENCE_NS)
        if not moments:
            return None
        return max(0, min(moments) - time.monotonic_ns()) / 1e9


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--link", type=int, required=True, help="descriptor of the socket pair")
    options.add_argument("--times", type=Path, required=True, help="file of the table of times")
    options.add_argument("--step-us", type=int, required=True, help="0: as fast as it goes")
    options.add_argument("--together", type=int, required=True, help="streams that begin at once")
    asked = options.parse_args()
    with (
        socket.socket(fileno=asked.link) as link,
        StepTimes(asked.times) as times,
        suppress(BrokenPipeError, ConnectionResetError),  # the server has gone
    ):
        Engine(link, times, asked.step_us * 1000, asked.together).run()


if __name__ == "__main__":
    main()
