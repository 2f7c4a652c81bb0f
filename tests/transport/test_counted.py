"""What the host counts is shown, each number under its own name, and every limit has its number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio
import attrs
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from quart import Quart, request

from antiphon.api.counters import Metrics
from antiphon.transport.counted import GAUGES, meanings
from antiphon.transport.limits import Limits
from antiphon.transport.listener import Listener, bind
from antiphon.transport.quart_host import EventStreamResponse
from antiphon.transport.settings import HostConfig
from antiphon.transport.sink import FrameSink
from transport.hosting import H1Client, H2Client, new_request_id, quart_app, serving_on


def shown(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(generate_latest(metrics.registry).decode())
    return {each.name: each.value for family in families for each in family.samples}


def test_each_number_is_shown_as_it_is_at_that_time() -> None:
    metrics = Metrics()
    names = list(meanings())
    assert {shown(metrics)[name_of(name)] for name in names} == {0}
    for value, name in enumerate(names, start=1):
        setattr(metrics.transport, name, value)
    after = shown(metrics)
    assert [after[name_of(name)] for name in names] == [*range(1, len(names) + 1)]


def name_of(number: str) -> str:
    return f"antiphon_transport_{number}" + ("" if number in GAUGES else "_total")


def test_servers_do_not_count_for_each_other() -> None:
    one, other = Metrics(), Metrics()
    one.transport.slow_bodies += 1
    assert shown(other)["antiphon_transport_slow_bodies_total"] == 0


class Frames:
    """A stream of four frames of a kilobyte, none of which is offered twice, and no end."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration  # our host has sinks

    def attach(self, sink: FrameSink) -> None:
        for _ in range(4):
            sink.offer(bytes(1024))

    async def aclose(self) -> None:
        """There is nothing to close."""


def application() -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.route("/waiting", methods=["GET", "POST"])
    async def waiting() -> str:
        await anyio.sleep_forever()
        return ""

    @app.post("/echo")
    async def echo() -> bytes:
        data: bytes = await request.body
        return data

    @app.get("/frames")
    async def frames() -> EventStreamResponse:
        return EventStreamResponse(Frames())

    return app


Client = Callable[[Listener], Coroutine[Any, Any, None]]


def over_h1(*pieces: bytes) -> Client:
    """Sends this, and waits for the end."""

    async def client(listener: Listener) -> None:
        async with H1Client.open(listener) as it:
            for piece in pieces:
                await it.send(piece)
            with suppress(ConnectionError):
                await it.rest()

    return client


def over_h2(act: Callable[[H2Client], object], window: int | None = None) -> Client:
    """Does this, and reads to the end."""

    async def client(listener: Listener) -> None:
        async with H2Client.open(listener, window) as it:
            act(it)
            await it.flush()
            await it.read_to_end()

    return client


async def mute(listener: Listener) -> None:
    """Asks by HTTP/2 and then hears nothing."""
    async with H2Client.open(listener) as it:
        await it.request("/waiting")
        await anyio.sleep_forever()


async def two(listener: Listener) -> None:
    async with H1Client.open(listener), H1Client.open(listener):
        await anyio.sleep_forever()


def ask(path: str, times: int = 1) -> Callable[[H2Client], object]:
    return lambda it: [it.queue(path) for _ in range(times)]


def stall(it: H2Client) -> None:
    """Gives no window back."""
    it.acknowledge = False
    it.queue("/frames")


def reset(it: H2Client) -> None:
    for _ in range(3):
        it.h2.reset_stream(it.queue("/waiting"))


def ping(it: H2Client) -> None:
    for _ in range(9):
        it.h2.ping(bytes(8))


def pour(it: H2Client) -> None:
    """A body that nobody wants yet, beyond the window of its stream, or of the connection."""
    stream = it.queue("/waiting", "POST", end=False, headers=[("expect", "100-continue")])
    it.h2.outbound_flow_control_window = it.h2.streams[stream].outbound_flow_control_window = 10**6
    for _ in range(10):
        it.h2.send_data(stream, bytes(16_000))


GET = b"GET /hi HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
LONG = b"GET /hi HTTP/1.1\r\nhost: x\r\nx-1: %s\r\nconnection: close\r\n\r\n" % bytes(b"y" * 300)
SOON = 0.05
TRIPS: dict[str, tuple[Limits, Client, str]] = {
    "h2_max_concurrent_streams": (
        Limits(h2_max_concurrent_streams=1, peer_silence=SOON, peer_answer=SOON),
        over_h2(ask("/waiting", 3)),
        "refused_streams",
    ),
    "h2_initial_window": (Limits(h2_initial_window=1), over_h2(pour), "protocol_errors"),
    "h2_connection_window": (
        Limits(h2_connection_window=2**16 - 1), over_h2(pour), "protocol_errors",
    ),
    "max_header_bytes": (Limits(max_header_bytes=200), over_h1(LONG), "large_headers"),
    "max_header_fields": (Limits(max_header_fields=2), over_h1(LONG), "large_headers"),
    "header_timeout": (Limits(header_timeout=SOON), over_h1(GET[:9]), "slow_headers"),
    "first_request_timeout": (Limits(first_request_timeout=SOON), over_h1(), "idle_ends"),
    "idle_timeout": (Limits(idle_timeout=SOON), over_h1(GET), "idle_ends"),
    "body_first_byte": (Limits(body_first_byte=SOON), over_h1(POST), "slow_bodies"),
    "body_min_rate": (
        Limits(body_min_rate=10**6, body_rate_window=SOON), over_h1(POST, b"x"), "slow_bodies",
    ),
    "body_rate_window": (Limits(body_rate_window=SOON), over_h1(POST, b"x"), "slow_bodies"),
    "stream_high": (
        Limits(stream_high=1024, stream_low=1, stall_timeout=SOON),
        over_h2(ask("/frames"), window=1),
        "detached",
    ),
    "stream_low": (
        Limits(stream_high=1024, stream_low=1024, stall_timeout=SOON),
        over_h2(ask("/frames"), window=1),
        "detached",
    ),
    "connection_high": (
        Limits(connection_high=1024, stall_timeout=SOON),
        over_h2(ask("/frames"), window=1),
        "detached",
    ),
    "stall_timeout": (
        Limits(stall_timeout=SOON), over_h2(stall, window=1), "stalled_readers",
    ),
    "peer_silence": (Limits(peer_silence=SOON, peer_answer=SOON), mute, "silent_peers"),
    "peer_answer": (Limits(peer_silence=SOON, peer_answer=SOON), mute, "silent_peers"),
    "reset_burst": (Limits(reset_burst=1), over_h2(reset), "resets_too_many"),
    "reset_rate": (Limits(reset_burst=1, reset_rate=0.1), over_h2(reset), "resets_too_many"),
    "control_burst": (Limits(control_burst=4), over_h2(ping), "control_floods"),
    "control_rate": (Limits(control_burst=4, control_rate=0.1), over_h2(ping), "control_floods"),
    "max_connections": (Limits(max_connections=1), two, "accept_pauses"),
}  # fmt: skip
"""Limit → with it so low, a client that goes beyond it, and the number that tells."""


def test_every_limit_has_a_number() -> None:
    assert {*TRIPS} == {field.name for field in attrs.fields(Limits)}
    assert {number for _, _, number in TRIPS.values()} <= {*meanings()}


@pytest.mark.parametrize("limit", TRIPS)
async def test_a_client_beyond_a_limit_is_shown(limit: str) -> None:
    limits, client, number = TRIPS[limit]
    metrics = Metrics()
    config = HostConfig(new_request_id, limits, metrics.transport)
    listener = bind("127.0.0.1", 0)
    async with serving_on(application(), [listener], config):
        assert shown(metrics)[name_of(number)] == 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client, listener)
            with anyio.fail_after(5):
                while not getattr(metrics.transport, number):
                    await anyio.lowlevel.checkpoint()
            assert shown(metrics)[name_of(number)] >= 1
            tasks.cancel_scope.cancel()
