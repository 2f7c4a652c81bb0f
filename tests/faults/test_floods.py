"""Clients that ask for work and nothing else: they lose their connection, and nobody loses more."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from faults.conftest import Serve
from faults.h2_client import CANCEL, ENHANCE_YOUR_CALM, H2Client
from faults.servers import Server

FLOOD = 5000
"""Frames, more than the burst of any limit."""


@contextmanager
def undisturbed(server: Server) -> Iterator[None]:
    """Another connection, whose stream goes on all the while."""
    with H2Client.open(server) as other:
        stream_id = other.request("/s/paced")
        assert other.goes_on(stream_id)
        yield
        assert other.goes_on(stream_id)
        assert other.get("/hi") == b"hi"


def is_sent_away(client: H2Client, *codes: int) -> bool:
    """The connection has ended with one of these codes (RFC 9113, section 7)."""
    assert client.read_to_end(), "the connection goes on"
    return len(client.goaways) == 1 and client.goaways[0] in codes


@pytest.mark.fails_on_stock("every request that is taken back at once has been run")
def test_requests_that_are_taken_back_at_once(serve: Serve) -> None:
    server = serve()
    with undisturbed(server), H2Client.open(server) as client:
        client.let_go_of_the_limit()
        for _ in range(150):
            for _ in range(20):
                client.h2.reset_stream(client.queue("/s/silent"), CANCEL)
            client.flush()
            if client.deaf:
                break
        assert is_sent_away(client, ENHANCE_YOUR_CALM)
        server.becomes(server.live, 1)
        # What was run before the limit was reached, and not all that was sent.
        assert server.tally()["entered"] < 200


@pytest.mark.fails_on_stock("its priority tree holds 1000 streams; one more ends the connection")
def test_the_same_in_one_write(serve: Serve) -> None:
    server = serve()
    with undisturbed(server), H2Client.open(server) as client:
        streams = [client.request("/s/paced") for _ in range(20)]
        assert client.until(lambda: client.begun(*streams))
        for _ in range(1500):
            client.h2.reset_stream(client.queue("/s/silent"), CANCEL)
        client.flush()
        assert is_sent_away(client, ENHANCE_YOUR_CALM)
        server.becomes(server.live, 1)


def test_now_and_then_a_request_may_be_taken_back(serve: Serve) -> None:
    server = serve()
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        for _ in range(50):
            client.h2.reset_stream(client.queue("/s/silent"), CANCEL)
        client.flush()
        assert client.goes_on(live)
        server.becomes(server.live, 1)


def test_streams_that_have_ended_may_be_reset(serve: Serve) -> None:
    """Clients do that, and it costs nobody anything."""
    server = serve()
    with H2Client.open(server) as client:
        for _ in range(300):
            stream_id = client.request("/hi")
            assert client.done(stream_id)
            client.send(RstStreamFrame(stream_id, CANCEL).serialize())
            client.seen.clear()
        assert client.get("/hi") == b"hi"


def pings(_: int) -> bytes:
    return PingFrame(0, b"12345678").serialize() * FLOOD


def settings(_: int) -> bytes:
    return SettingsFrame(0, {SettingsFrame.INITIAL_WINDOW_SIZE: 70000}).serialize() * FLOOD


def empty_data(stream_id: int) -> bytes:
    return DataFrame(stream_id, b"").serialize() * FLOOD


@pytest.mark.fails_on_stock("frames that carry nothing are taken without a limit")
@pytest.mark.parametrize("frames", [pings, settings, empty_data])
def test_frames_that_carry_nothing(serve: Serve, frames: Callable[[int], bytes]) -> None:
    server = serve()
    with undisturbed(server), H2Client.open(server) as client:
        stream_id = client.request("/length", "POST", end=False)
        client.send(frames(stream_id))
        assert is_sent_away(client, ENHANCE_YOUR_CALM)
        server.becomes(server.live, 1)


def test_a_few_of_them_may_be_sent(serve: Serve) -> None:
    server = serve()
    with H2Client.open(server) as client:
        stream_id = client.request("/length", "POST", end=False)
        for frames in (pings, settings, empty_data):
            client.send(frames(stream_id)[: len(frames(stream_id)) // FLOOD * 50])
        client.h2.end_stream(stream_id)
        client.flush()
        assert client.done(stream_id)
        assert client.body(stream_id) == b"0"


def test_a_head_of_endless_continuations(serve_ours: Serve) -> None:
    server = serve_ours()
    before = server.rss()
    with undisturbed(server), H2Client.open(server) as client:
        client.send(HeadersFrame(1, b"\x82").serialize())
        for _ in range(200):
            # Literal fields without indexing, none of them the last.
            field = b"\x00\x01x\x7f\x81\x7f" + b"a" * 16_000
            client.send(ContinuationFrame(1, field[:16_000]).serialize() * 10)
            if client.deaf:
                break
        assert client.read_to_end()
        server.becomes(server.live, 1)
        assert server.rss() - before < 8_000_000


def test_empty_continuations(serve_ours: Serve) -> None:
    server = serve_ours()
    with undisturbed(server), H2Client.open(server) as client:
        client.send(HeadersFrame(1, b"\x82").serialize())
        client.send(ContinuationFrame(1, b"").serialize() * FLOOD)
        assert client.read_to_end()


def test_a_frame_that_is_too_large_is_not_waited_for(serve_ours: Serve) -> None:
    """Its length is known from its first bytes (RFC 9113, section 4.2)."""
    server = serve_ours()
    with undisturbed(server), H2Client.open(server) as client:
        before = server.rss()
        client.send(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01")
        for _ in range(150):
            client.send(b"x" * 100_000)
        assert client.read_to_end()
        assert server.rss() - before < 4_000_000


def test_windows_that_are_opened_by_nothing(serve: Serve) -> None:
    """Of a stream it costs that stream (RFC 9113, section 6.9), of the connection all."""
    server = serve()
    with undisturbed(server), H2Client.open(server) as client:
        client.send(struct.pack(">HBBBLL", 0, 4, 8, 0, 0, 0))
        assert is_sent_away(client, 1)


def test_windows_that_are_opened_too_far(serve: Serve) -> None:
    server = serve()
    with undisturbed(server), H2Client.open(server) as client:
        client.send(WindowUpdateFrame(0, 2**31 - 1).serialize())
        assert is_sent_away(client, 3)


@pytest.mark.parametrize(
    "garbage",
    [
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),
        b"\x00" * 200_000,
        b"GET\r\n\r\n",
        b"POST /length HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    ],
    ids=["preface", "frames", "tls", "zeros", "line", "chunk", "length"],
)
def test_what_is_no_http(serve_ours: Serve, garbage: bytes) -> None:
    server = serve_ours()
    with undisturbed(server), server.connect() as sock:
        try:
            sock.sendall(garbage)
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
        server.becomes(server.live, 1)


def test_what_is_no_tls(serve_ours: Serve) -> None:
    server = serve_ours(tls=True)
    with (
        undisturbed(server),
        socket.create_connection(("127.0.0.1", server.port), server.guard_s) as sock,
    ):
        sock.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        try:
            while sock.recv(65536):
                pass
        except ConnectionError:
            pass
