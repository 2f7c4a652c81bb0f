"""A server, started, loaded case by case and ended: one visit of one contestant."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from benchmarks.peers import Server
from benchmarks.serving import accounts
from benchmarks.serving.cells import Case, Pair, Run, why_void
from benchmarks.serving.client import Client, Failed, Seen
from benchmarks.serving.contestants import Contestant
from benchmarks.serving.processes import free_port
from benchmarks.serving.request_bytes import request_bytes

WARM_TOKENS = 8
PROBES = 3
"""Single streams that tell how many events bring no token, where one may lack some that do."""
SETTLE_S = 0.15
"""What the server gets to put away a run before its accounts are read."""
LEEWAY_S = 20.0
"""How much longer than its tokens take a run may take."""


@attrs.frozen
class Plan:
    """What all visits have in common."""

    client: Client
    server_cpu: int
    engine_cpu: int
    short: int
    """Tokens a stream of the short run, …"""
    long: int
    """… and of the long one."""
    foreign_limit: float


@attrs.frozen
class Void:
    """A case that gave no pair at all, and why."""

    case: Case
    reason: str
    for_good: bool = False
    """Whether it is no use to try again: the server does not have such a thing."""


def visit(
    plan: Plan, contestant: Contestant, cases: Sequence[Case], repetition: int
) -> Iterator[Pair | Void]:
    """Measure the cases, which are of one number of streams and one pace, on one server."""
    first = cases[0]
    port = free_port()
    try:
        server = contestant.peer.start(
            port,
            plan.server_cpu,
            plan.engine_cpu,
            first.streams + first.stalled,
            first.step_us,
        )
    except RuntimeError as failure:
        yield from (Void(case, f"it does not start: {failure}") for case in cases)
        return
    try:
        for case in cases:
            if case.proto in server.protocols:
                yield _Visit(plan, contestant, server, port, case).measure(repetition)
            else:
                yield Void(case, f"it does not speak {case.proto}", for_good=True)
    finally:
        server.stop()


@attrs.frozen
class _Visit:
    plan: Plan
    contestant: Contestant
    server: Server
    port: int
    case: Case

    def measure(self, repetition: int) -> Pair | Void:
        case, merges = self.case, self.contestant.peer.merges
        try:
            warm = self._load(WARM_TOKENS)
            ending = self._ending()
            if warm.events != case.streams * (WARM_TOKENS + ending) and not merges:
                return Void(case, f"{warm.events} events of {case.streams} equal streams")
            time.sleep(SETTLE_S)
            _forget_peak(self.server.pid)
            idle = accounts.rss_bytes(self.server.pid)
            runs = [self._run(tokens, ending) for tokens in (self.plan.short, self.plan.long)]
        except LookupError as missing:
            return Void(case, str(missing), for_good=True)
        except Failed as failure:
            return Void(case, str(failure))
        return Pair(
            case=case,
            repetition=repetition,
            short=runs[0],
            long=runs[1],
            idle_bytes=idle,
            after_bytes=accounts.rss_bytes(self.server.pid),
            peak_bytes=accounts.peak_bytes(self.server.pid),
            reason=why_void(runs, merges=merges, foreign_limit=self.plan.foreign_limit),
        )

    def _ending(self) -> int:
        """The events of a stream that bring no token.

        Asked with one stream at a time: among many, a server that merges may do so in each of them.
        """
        probes = PROBES if self.contestant.peer.merges else 1
        return max(self._load(WARM_TOKENS, alone=True).events for _ in range(probes)) - WARM_TOKENS

    def _run(self, tokens: int, ending: int) -> Run:
        """``ending``: the events of a stream that bring no token."""
        began, ours, busy = time.monotonic(), _ours_s(), accounts.busy_s()
        before = accounts.cpu_ns(self.server.pid)
        seen = self._load(tokens)
        time.sleep(SETTLE_S)
        used = accounts.cpu_ns(self.server.pid) - before
        foreign = accounts.busy_s() - busy - (_ours_s() - ours)
        return Run(
            wanted=self.case.streams * (tokens + ending),
            seen=seen,
            cpu_ns=used,
            foreign=round(max(0.0, foreign) / (time.monotonic() - began), 3),
        )

    def _load(self, tokens: int, *, alone: bool = False) -> Seen:
        """All streams of the case, or a single one ``alone``."""
        case = self.case
        request = request_bytes(case.proto, *self.server.request(case.api, tokens))
        limit_s = LEEWAY_S + 3 * tokens * case.step_us / 1e6
        return self.plan.client.run(
            self.port,
            case.proto,
            1 if alone else case.streams,
            request,
            case.api,
            limit_s,
            stalled=0 if alone else case.stalled,
        )


def _ours_s() -> float:
    """CPU seconds of all that belongs to the measurement: server, engine, client and this."""
    return accounts.cpu_ns(os.getpid()) / 1e9 + accounts.children_s()


def _forget_peak(pid: int) -> None:
    """Let the peak of memory begin anew (proc(5), ``clear_refs``)."""
    for each in accounts.tree(pid):
        try:
            Path(f"/proc/{each}/clear_refs").write_text("5")
        except OSError:
            return  # then it is the peak since the start


def turned(cases: Sequence[Case], repetition: int) -> list[Case]:
    """The cases, beginning at another one in every repetition."""
    start = repetition % len(cases)
    return [*cases[start:], *cases[:start]]
