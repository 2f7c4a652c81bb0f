"""A connection that ends, in whatever way: every one of its handlers ends with it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import CANCEL, H2Client
from faults.test_early_answers import late_data
from faults.test_stream_table import priorities

TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
MODES = pytest.mark.parametrize("mode", ["paced", "silent"])
STREAMS = 20
MALFORMED = b"\x00\x00\x05\x00\x00\x00\x00\x00\x00xxxxx"
"""DATA on stream 0."""


def sever(sock: socket.socket) -> None:
    """Close with a reset, as the kernel does for a process that dies with data unread."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def end_sending(sock: socket.socket) -> None:
    sock.shutdown(socket.SHUT_WR)


ENDS: dict[str, Callable[[socket.socket], None]] = {
    "closed": socket.socket.close,
    "reset": sever,
    "half closed": end_sending,
}


def many_priorities(client: H2Client) -> None:
    client.send(priorities(1500))


@pytest.mark.fails_on_stock("the task of the connection dies, and Quart's handlers go on for ever")
@pytest.mark.parametrize("poke", [late_data, many_priorities])
def test_after_what_the_host_stumbles_over(serve: Serve, poke: Callable[[H2Client], None]) -> None:
    server = serve()
    with H2Client.open(server) as client:
        streams = [client.request("/s/paced") for _ in range(STREAMS)]
        assert client.until(lambda: client.begun(*streams))
        poke(client)
        client.round_trip()
    server.becomes(server.live, 0)
    assert server.tally()["entered"] == STREAMS


@TLS
def test_after_a_malformed_frame(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls)
    with H2Client.open(server) as client:
        streams = [client.request("/s/paced") for _ in range(STREAMS)]
        assert client.until(lambda: client.begun(*streams))
        client.send(MALFORMED)
        assert client.read_to_end()
        assert client.goaways == [1]
    server.becomes(server.live, 0)


@MODES
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("how", ENDS)
def test_after_the_connection_of_many_streams(serve: Serve, how: str, mode: str, tls: bool) -> None:
    server = serve(tls=tls)
    with H2Client.open(server) as client:
        streams = [client.request(f"/s/{mode}") for _ in range(50)]
        assert client.until(lambda: client.begun(*streams))
        ENDS[how](client.socket)
        server.becomes(server.live, 0)


@MODES
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("how", ENDS)
def test_after_the_connection_of_one_stream(serve: Serve, how: str, mode: str, tls: bool) -> None:
    server = serve(tls=tls)
    with H1Client.open(server) as client:
        client.request(f"/s/{mode}")
        assert client.until(b"data: 0\n\n")
        ENDS[how](client.socket)
        server.becomes(server.live, 0)


@MODES
@pytest.mark.parametrize("way", ["s", "sink"])
@pytest.mark.parametrize("how", [*ENDS, "stream reset"])
def test_of_both_ways_of_sending(serve_ours: Serve, how: str, way: str, mode: str) -> None:
    server = serve_ours()
    with H2Client.open(server) as client, H1Client.open(server) as plain:
        stream_id = client.request(f"/{way}/{mode}")
        plain.request(f"/{way}/{mode}")
        assert client.until(lambda: client.begun(stream_id))
        assert plain.until(b"data: 0\n\n")
        if how == "stream reset":
            client.h2.reset_stream(stream_id, CANCEL)
            client.flush()
            plain.socket.close()
        else:
            ENDS[how](client.socket)
            ENDS[how](plain.socket)
        server.becomes(server.live, 0)


@MODES
def test_after_a_reset_of_the_stream(serve: Serve, mode: str) -> None:
    server = serve()
    with H2Client.open(server) as client:
        stream_id, other = client.request(f"/s/{mode}"), client.request("/s/paced")
        assert client.until(lambda: client.begun(stream_id, other))
        client.h2.reset_stream(stream_id, CANCEL)
        client.flush()
        server.becomes(server.live, 1)
        assert client.goes_on(other)


@TLS
@pytest.mark.fails_on_stock("nobody reads while a response runs, so its client's end is not seen")
def test_when_the_next_request_waits_behind_the_stream(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls)
    with H1Client.open(server) as client:
        client.request("/s/silent")
        assert client.until(b"data: 0\n\n")
        client.request("/hi")
        client.socket.close()
        server.becomes(server.live, 0)


def test_the_next_request_is_answered_after_the_stream(serve: Serve) -> None:
    server = serve()
    with H1Client.open(server) as client:
        client.request("/s/paced?n=20")
        assert client.until(b"data: 0\n\n")
        client.request("/hi")
        first = client.answer()
        assert first is not None
        assert first[1].endswith(b"data: 19\n\n")
        assert client.answer() == (200, b"hi")
