"""A stream that fails or is cut in its middle: the client can tell it from one that ended."""

from __future__ import annotations

import pytest

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import INTERNAL_ERROR, H2Client

# The application's exception is logged as such, in as many lines as it takes.
pytestmark = pytest.mark.logs_its_own
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
PLAIN_TEXT = "&type=text/plain"


@TLS
@pytest.mark.fails_on_stock("a stream that failed has no end, and its client waits for ever")
def test_an_exception_in_mid_stream_is_a_reset(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls)
    with H2Client.open(server) as client:
        stream_id = client.request("/s/boom")
        live = client.request("/s/paced")
        assert client.done(stream_id)
        assert client.reset(stream_id) == INTERNAL_ERROR
        assert client.body(stream_id) == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
        assert client.goes_on(live)


@TLS
@pytest.mark.parametrize("path", ["/s/boom", "/sink/boom"])
def test_the_same_of_both_ways_of_sending(serve_ours: Serve, path: str, tls: bool) -> None:
    server = serve_ours(tls=tls)
    with H2Client.open(server) as client:
        stream_id = client.request(path)
        assert client.done(stream_id)
        assert client.reset(stream_id) == INTERNAL_ERROR
    with H1Client.open(server) as plain:
        plain.request(path)
        assert plain.answer() is None
        assert plain.eof


@TLS
def test_an_exception_in_mid_stream_closes_h1_without_a_last_chunk(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls)
    with H1Client.open(server) as client:
        client.request("/s/boom")
        assert client.until(b"data: 2\n\n")
        assert client.answer() is None
        assert client.eof


@pytest.mark.fails_on_stock("Quart cuts every stream after RESPONSE_TIMEOUT, and on h2 it hangs")
def test_an_event_stream_has_no_response_timeout(serve: Serve) -> None:
    server = serve(response_timeout_s=0.2)
    with H2Client.open(server) as client:
        stream_id = client.request("/s/paced?n=60")
        assert client.done(stream_id)
        assert client.ended(stream_id)
        assert client.body(stream_id).endswith(b"data: 59\n\n")


@pytest.mark.fails_on_stock("a response that took too long has no end on h2")
def test_a_response_that_takes_too_long_is_reset(serve: Serve) -> None:
    server = serve(response_timeout_s=0.2)
    with H2Client.open(server) as client:
        stream_id = client.request(f"/s/paced?n=1000000{PLAIN_TEXT}")
        assert client.until(lambda: client.over(stream_id) or len(client.body(stream_id)) > 5000)
        assert client.reset(stream_id) == INTERNAL_ERROR


def test_a_response_that_takes_too_long_closes_h1(serve: Serve) -> None:
    server = serve(response_timeout_s=0.2)
    with H1Client.open(server) as client:
        client.request(f"/s/paced?n=1000000{PLAIN_TEXT}")
        assert client.answer() is None
        assert client.eof
