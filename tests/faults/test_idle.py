"""A connection that is silent: it ends in time, and is told so."""

from __future__ import annotations

import pytest

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import H2Client

TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
SOON = {"first_request_timeout": 0.3, "idle_timeout": 0.3}


@pytest.mark.fails_on_stock("a connection by prior knowledge has no time for its first request")
def test_an_h2_connection_that_asks_for_nothing_ends(serve: Serve) -> None:
    server = serve(limits=SOON)
    with H2Client.open(server) as client:
        assert client.read_to_end()
        assert client.goaways == [0]


def test_over_tls_too(serve_ours: Serve) -> None:
    server = serve_ours(tls=True, limits=SOON)
    with H2Client.open(server) as client:
        assert client.read_to_end()
        assert client.goaways == [0]


@TLS
@pytest.mark.fails_on_stock("an idle connection is closed without a GOAWAY")
def test_an_h2_connection_that_asks_no_more_ends(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls, limits=SOON)
    with H2Client.open(server) as client:
        assert client.get("/hi") == b"hi"
        assert client.read_to_end()
        assert client.goaways == [0]


@TLS
@pytest.mark.parametrize("path", [None, "/hi"])
def test_an_h1_connection_ends(serve: Serve, path: str | None, tls: bool) -> None:
    server = serve(tls=tls, limits=SOON)
    with H1Client.open(server) as client:
        if path is not None:
            client.request(path)
            assert client.answer() == (200, b"hi")
        assert client.read_to_end()


def test_open_streams_are_no_silence(serve: Serve) -> None:
    server = serve(limits=SOON)
    with H2Client.open(server) as client, H1Client.open(server) as plain:
        stream_id = client.request("/s/paced?n=150")
        plain.request("/s/paced?n=150")
        assert client.done(stream_id)
        assert client.body(stream_id).endswith(b"data: 149\n\n")
        answer = plain.answer()
        assert answer is not None
        assert answer[1] == client.body(stream_id)
