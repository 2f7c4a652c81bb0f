"""Peers that vanish without a word, and streams that have nothing to say for a while."""

from __future__ import annotations

import pytest
from h2 import events

from faults.conftest import Serve
from faults.h2_client import H2Client

SOON = {"peer_silence": 0.2, "peer_answer": 0.3}
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


@TLS
def test_a_peer_that_answers_no_ping_is_gone(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls, limits=SOON)
    with H2Client.open(server) as client:
        streams = [client.request("/s/silent") for _ in range(3)]
        assert client.until(lambda: client.begun(*streams))
        # It reads no more, so it does not answer either; its socket stays open.
        server.becomes(server.live, 0)
        assert client.read_to_end()
        assert client.of(events.PingReceived)


@TLS
def test_a_peer_that_answers_pings_is_there(serve_ours: Serve, tls: bool) -> None:
    server = serve_ours(tls=tls, limits=SOON)
    with H2Client.open(server) as client:
        stream_id = client.request("/s/silent")
        assert client.until(lambda: len(client.of(events.PingReceived)) > 4)
        assert server.live() == 1
        assert not client.over(stream_id)
