"""A measurement with servers that leave events out: which may, and what is counted then."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import pytest
from benchmarks.peers import Api, Peer, Proto, Server
from benchmarks.serving.cells import Case, Pair
from benchmarks.serving.client import Client
from benchmarks.serving.contestants import Contestant, known_peers, ours
from benchmarks.serving.measuring import Plan, Void, visit

STREAMS, SHORT, LONG = 4, 64, 320
ENDING = 2
CASE = Case("stand-in", "chat", "h1", STREAMS, 1000)

Lost = Callable[[int, int], int]
"""How many events are left out: of streams so far, and of the tokens of this one."""


@contextmanager
def stand_in(lost: Lost) -> Iterator[int]:
    """A port at which ``tokens`` events and two more are had, but for those that are ``lost``."""
    streams = 0
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal streams
            tokens = int(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                streams += 1
                count = tokens + ENDING - lost(streams, tokens)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(b"data: x\n\n" * (count - 1) + b"data: [DONE]\n\n")

        def log_message(self, *_: object) -> None:
            """Nothing is told."""

    class Quiet(ThreadingHTTPServer):
        request_queue_size = 64

    with Quiet(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@attrs.frozen
class StandIn:
    """A peer that runs within this process."""

    merges: bool
    pid: int = attrs.Factory(os.getpid)
    protocols: tuple[Proto, ...] = ("h1",)

    def available(self) -> str | None:
        return None

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        del port, server_cpu, engine_cpu, streams, step_us
        return self

    def request(self, api: Api, tokens: int) -> tuple[str, Mapping[str, str], bytes]:
        return f"/{api}", {}, str(tokens).encode()

    def stop(self) -> None:
        """It ends with the block."""


def measured(
    client: Client, monkeypatch: pytest.MonkeyPatch, *, merges: bool, lost: Lost
) -> Pair | Void:
    cpu = min(os.sched_getaffinity(0))
    plan = Plan(client, cpu, cpu, SHORT, LONG, foreign_limit=float("inf"))
    with stand_in(lost) as port:
        monkeypatch.setattr("benchmarks.serving.measuring.free_port", lambda: port)
        (found,) = visit(plan, Contestant("stand-in", StandIn(merges)), [CASE], 0)
    return found


def nothing(streams: int, tokens: int) -> int:
    del streams, tokens
    return 0


def one_of_the_long_run(streams: int, tokens: int) -> int:
    del streams
    return int(tokens == LONG)


def among_many(streams: int, tokens: int) -> int:
    """A quarter of the tokens of the first streams, all at once, and a few of the long ones."""
    return 2 if streams <= STREAMS else tokens // 100


def test_an_event_that_is_lost_makes_a_run_void(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = measured(client, monkeypatch, merges=False, lost=nothing)
    assert isinstance(whole, Pair)
    assert whole.reason is None
    assert whole.long.wanted == whole.long.seen.events == STREAMS * (LONG + ENDING)
    short = measured(client, monkeypatch, merges=False, lost=one_of_the_long_run)
    assert isinstance(short, Pair)
    assert short.reason == f"{STREAMS * (LONG + 1)} events instead of {STREAMS * (LONG + ENDING)}"
    odd = measured(client, monkeypatch, merges=False, lost=among_many)
    assert isinstance(odd, Void)


def test_one_that_merges_is_asked_alone_what_a_stream_has_and_costs_what_came(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measured(client, monkeypatch, merges=True, lost=among_many)
    assert isinstance(found, Pair)
    assert found.reason is None
    came = [run.seen.events for run in (found.short, found.long)]
    assert [run.wanted for run in (found.short, found.long)] == [
        STREAMS * (tokens + ENDING) for tokens in (SHORT, LONG)
    ]
    assert came == [STREAMS * (SHORT + ENDING), STREAMS * (LONG + ENDING - 3)]
    used_us = (found.long.cpu_ns - found.short.cpu_ns) / 1e3
    assert found.us_per_event == pytest.approx(used_us / (came[1] - came[0]))


def test_only_those_that_say_so_may_merge(tmp_path: Path) -> None:
    peers: dict[str, Peer] = {
        **known_peers(),
        **{e.name: e.peer for e in ours(["asyncio"], tmp_path, None, ())},
    }
    merging = {name for name, peer in peers.items() if peer.merges}
    assert merging == {"vllm", "vllm-zmq", "vllm-rust"}
