"""An answer that comes before the body of its request, and what arrives of the body after it."""

from __future__ import annotations

import pytest
from hyperframe.frame import DataFrame

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import H2Client

MIB = 1024 * 1024
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


def late_data(client: H2Client) -> None:
    """A refused upload whose client has not yet read the answer."""
    stream_id = client.request("/early", "POST", end=False)
    assert client.answered(stream_id)
    assert client.status(stream_id) == "400"
    # By hand: the stream may have been reset, and yet its data is under way.
    client.send(DataFrame(stream_id, b"x" * 232).serialize())


@TLS
@pytest.mark.fails_on_stock("data after an early answer ends the connection")
def test_data_after_an_early_answer_harms_no_other_stream(serve: Serve, tls: bool) -> None:
    server = serve(tls=tls)
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        assert client.goes_on(live)
        late_data(client)
        assert client.goes_on(live)
        assert client.get("/hi") == b"hi"
        assert client.goaways == []


def test_refused_uploads_give_their_windows_back(serve_ours: Serve) -> None:
    """More than the connection's window altogether, each with its body behind the answer."""
    server = serve_ours()
    with H2Client.open(server) as client:
        for _ in range(12):
            stream_id = client.request("/early", "POST", end=False)
            assert client.answered(stream_id)
            client.upload(stream_id, b"x" * MIB)
            if client.reset(stream_id) is None:
                client.h2.end_stream(stream_id)
                client.flush()
        upload = client.request("/length", "POST", end=False)
        client.upload(upload, b"x" * 5 * MIB)
        client.h2.end_stream(upload)
        client.flush()
        assert client.done(upload)
        assert client.body(upload) == b"%d" % (5 * MIB)


@TLS
def test_the_next_request_on_h1_is_answered(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls)
    with H1Client.open(server) as client:
        client.request("/early", "POST", f"content-length: {MIB}")
        assert client.answer("POST") == (400, b"no")
        client.send(b"x" * MIB)
        client.request("/hi")
        assert client.answer() == (200, b"hi")
