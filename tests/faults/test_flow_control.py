"""A client that takes nothing: what is made for it is bounded, and it gets all once it reads."""

from __future__ import annotations

from typing import Any

import pytest

from faults.application import FLOOD_FRAME, frame_of
from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import GREAT, H2Client

WINDOW = 65535
QUEUE = 64 * 1024
FEW = 8 * FLOOD_FRAME
MB = 1_000_000

SHUT: dict[str, dict[str, Any]] = {
    "window of the stream used up": {},
    "window of the connection used up": {"window": GREAT, "connection_window": None},
    "first window of nothing": {"window": 0},
}


@pytest.mark.fails_on_stock("a shut window lets the handler go on for ever")
@pytest.mark.parametrize("shut", SHUT)
def test_a_shut_window_holds_the_handler(serve: Serve, shut: str) -> None:
    server = serve()
    with H2Client.open(server, **SHUT[shut], takes=False) as client:
        client.request("/s/flood")
        made = server.settles(lambda: server.tally()["produced"], WINDOW + QUEUE + FEW)
        assert made >= QUEUE - FEW


@pytest.mark.parametrize("shut", SHUT)
def test_a_shut_window_detaches_the_sink(serve_ours: Serve, shut: str) -> None:
    server = serve_ours()
    with H2Client.open(server, **SHUT[shut], takes=False) as client:
        client.request("/sink/flood")
        server.settles(lambda: server.tally()["produced"], WINDOW + QUEUE + FEW)


@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
def test_a_socket_that_is_not_read_holds_the_handler(serve_ours: Serve, path: str) -> None:
    server = serve_ours()
    server.tally()
    before = server.rss()
    with H1Client.open(server, receive_buffer=4096) as client:
        client.request(path)
        # The socket's own buffers are the kernel's affair.
        server.settles(lambda: server.tally()["produced"], 8 * MB)
        assert server.rss() - before < 2 * MB


def test_a_socket_that_is_not_read_holds_quart(serve: Serve) -> None:
    server = serve()
    with H1Client.open(server, receive_buffer=4096) as client:
        client.request("/s/flood")
        server.settles(lambda: server.tally()["produced"], 8 * MB)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
def test_what_was_held_comes_whole_on_h2(serve_ours: Serve, path: str, tls: bool) -> None:
    server, count = serve_ours(tls=tls), 2000
    with H2Client.open(server, window=0, takes=False) as client:
        stream_id = client.request(f"{path}?n={count}")
        server.settles(lambda: server.tally()["produced"], QUEUE + FEW)
        client.takes = True
        client.h2.increment_flow_control_window(1, stream_id)
        client.flush()
        assert client.until(lambda: client.body(stream_id) == b"d")
        client.h2.increment_flow_control_window(200_000, stream_id)
        client.flush()
        assert client.done(stream_id)
        assert client.ended(stream_id)
        assert client.body(stream_id) == b"".join(frame_of("flood", each) for each in range(count))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
def test_what_was_held_comes_whole_on_h1(serve_ours: Serve, path: str, tls: bool) -> None:
    server, count = serve_ours(tls=tls), 10_000
    with H1Client.open(server, receive_buffer=65536) as client:
        client.request(f"{path}?n={count}")
        server.settles(lambda: server.tally()["produced"], count * FLOOD_FRAME - 1)
        answer = client.answer()
    assert answer == (200, b"".join(frame_of("flood", each) for each in range(count)))


def test_one_shut_stream_holds_no_other(serve_ours: Serve) -> None:
    """All on one connection, by either way of sending."""
    server = serve_ours()
    with H2Client.open(server, takes=False) as client:
        for path in ("/s/flood", "/sink/flood"):
            client.request(path)
        server.settles(lambda: server.tally()["produced"], 2 * (WINDOW + QUEUE + FEW))
        client.takes = True
        for path in ("/s/paced?n=30", "/sink/paced?n=30"):
            assert client.get(path) == b"".join(frame_of("paced", each) for each in range(30))
