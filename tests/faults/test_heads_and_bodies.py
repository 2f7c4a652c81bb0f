"""Heads that are too large, heads and bodies that come slowly or never."""

from __future__ import annotations

import json

import pytest

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import H2Client

TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
LARGE = 40_000
"""Bytes of a header, more than anyone may send."""
MANY = [f"x-{number}: {number}" for number in range(120)]
"""More header fields than anyone may send."""
SOON = {"header_timeout": 0.3, "body_first_byte": 0.3, "body_rate_window": 0.4}


def is_refused(client: H1Client, status: int) -> bool:
    """Answered so, and the connection ends."""
    assert client.read_to_end()
    return client.status_line().split(" ")[1] == str(status)


@pytest.mark.fails_on_stock("only a head that is not whole is judged by its length")
def test_a_large_head_is_refused_when_it_comes_at_once(serve: Serve) -> None:
    server = serve()
    with H1Client.open(server) as client:
        client.request("/hi", "GET", "x-a: " + "a" * LARGE, "connection: close")
        assert is_refused(client, 431)


@TLS
def test_a_large_head_is_refused_when_it_comes_in_pieces(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls)
    with H1Client.open(server) as client:
        client.send(b"GET /hi HTTP/1.1\r\nhost: x\r\nx-a: ")
        for _ in range(LARGE // 1000):
            client.send(b"a" * 1000)
        assert client.until(b"\r\n\r\n")
        assert client.status_line() == "HTTP/1.1 431 Request Header Fields Too Large"


def test_a_head_below_the_limit_is_read(serve: Serve) -> None:
    server = serve()
    with H1Client.open(server) as client:
        client.request("/hi", "GET", "x-a: " + "a" * 15_000)
        assert client.answer() == (200, b"hi")


@pytest.mark.parametrize("fields", [["x-a: " + "a" * LARGE], MANY], ids=["large", "many"])
def test_on_h2_the_stream_alone_is_refused(serve_ours: Serve, fields: list[str]) -> None:
    server = serve_ours()
    headers = [(name, value.strip()) for name, value in (field.split(":") for field in fields)]
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        refused = client.request("/hi", headers=headers)
        assert client.done(refused)
        assert client.status(refused) == "431"
        assert json.loads(client.body(refused))["error"]["code"] == "headers_too_large"
        assert client.goes_on(live)


def test_many_fields_are_refused_on_h1(serve_ours: Serve) -> None:
    server = serve_ours()
    with H1Client.open(server) as client:
        client.request("/hi", "GET", *MANY, "connection: close")
        assert is_refused(client, 431)


@TLS
def test_a_head_that_never_ends_has_its_time(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls, limits=SOON)
    with H1Client.open(server) as client:
        client.send(b"GET /hi HTTP/1.1\r\n")
        assert client.read_to_end()


def test_a_head_that_comes_slowly_has_no_more(serve_ours: Serve) -> None:
    """The time is not begun again with every byte."""
    server = serve_ours(limits=SOON)
    with H1Client.open(server) as client:
        client.socket.settimeout(0.1)
        client.send(b"GET /hi HTTP/1.1\r\nx-a: ")
        for _ in range(200):
            client.send(b"a")
            client.read()
            if client.eof:
                break
        assert client.eof


@TLS
def test_a_body_that_never_comes_has_its_time(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls, limits=SOON)
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        stream_id = client.request("/length", "POST", end=False)
        assert client.done(stream_id)
        assert client.status(stream_id) == "408"
        assert client.goes_on(live)
    server.becomes(server.live, 0)


@TLS
def test_a_body_that_comes_slowly_has_its_time_on_h2(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls, limits=SOON)
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        stream_id = client.request("/length", "POST", end=False)
        for _ in range(1000):
            client.h2.send_data(stream_id, b"x")
            client.flush()
            assert client.goes_on(live)
            if client.status(stream_id) is not None or client.over(stream_id):
                break
        assert client.done(stream_id)
        assert client.status(stream_id) == "408"
    server.becomes(server.live, 0)


@TLS
@pytest.mark.parametrize("piece", [b"", b"x"], ids=["never", "slowly"])
def test_the_same_on_h1(serve_ours: Serve, piece: bytes, tls: bool) -> None:
    server = serve_ours(tls=tls, limits=SOON)
    with H1Client.open(server) as client:
        client.request("/length", "POST", "content-length: 1000000")
        client.socket.settimeout(0.05)
        for _ in range(400):
            client.send(piece)
            client.read()
            if client.raw or client.eof:
                break
        assert client.status_line().startswith("HTTP/1.1 408 ")
    server.becomes(server.live, 0)


def test_a_body_that_comes_fast_enough_is_read(serve_ours: Serve) -> None:
    """Longer than all of the times, at more than the least rate."""
    server = serve_ours(limits=SOON)
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        stream_id = client.request("/length", "POST", end=False)
        for _ in range(20):
            client.h2.send_data(stream_id, b"x" * 4096)
            client.flush()
            assert client.goes_on(live)
        client.h2.end_stream(stream_id)
        client.flush()
        assert client.done(stream_id)
        assert client.body(stream_id) == b"%d" % (20 * 4096)
