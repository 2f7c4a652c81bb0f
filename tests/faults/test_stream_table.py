"""Many streams and many requests on one HTTP/2 connection; what a client says of priorities."""

from __future__ import annotations

import pytest
from hyperframe.frame import PriorityFrame

from faults.conftest import Serve
from faults.h2_client import REFUSED_STREAM, H2Client


def priorities(count: int) -> bytes:
    """Frames that give places to streams which nobody has opened."""
    ids = range(101, 101 + 2 * count, 2)
    return b"".join(PriorityFrame(each, depends_on=0, stream_weight=15).serialize() for each in ids)


@pytest.mark.fails_on_stock("its priority tree holds 1000 streams; one more ends the connection")
def test_priorities_cost_nobody_anything(serve: Serve) -> None:
    server = serve()
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        assert client.goes_on(live)
        client.send(priorities(1500))
        assert client.goes_on(live)
        assert client.get("/hi") == b"hi"


@pytest.mark.fails_on_stock("its priority tree holds 1000 streams; one more ends the connection")
def test_as_many_streams_are_open_as_the_limit_says(serve: Serve) -> None:
    server = serve(limits={"h2_max_concurrent_streams": 2000})
    with H2Client.open(server) as client:
        client.read()
        client.let_go_of_the_limit()
        streams = [client.queue("/s/silent") for _ in range(1100)]
        client.flush()
        assert client.until(lambda: client.begun(streams[-1]))
        server.becomes(server.live, 1100)
    server.becomes(server.live, 0)


@pytest.mark.fails_on_stock("request 1000 ends the connection, and its open streams hang")
def test_the_thousandth_request_is_one_like_the_others(serve: Serve) -> None:
    server = serve()
    with H2Client.open(server) as client:
        live = client.request("/s/paced")
        for _ in range(101):
            streams = [client.queue("/hi") for _ in range(10)]
            client.flush()
            assert client.done(*streams)
            assert client.ended(*streams)
            client.seen.clear()
        assert client.goaways == []
        assert client.goes_on(live)


@pytest.mark.fails_on_stock("one stream too many ends the connection")
def test_one_stream_too_many_is_refused_alone(serve: Serve) -> None:
    server = serve(limits={"h2_max_concurrent_streams": 5})
    with H2Client.open(server) as client:
        first = client.request("/s/paced")
        assert client.goes_on(first)
        client.let_go_of_the_limit()
        others = [client.request("/s/paced") for _ in range(5)]
        assert client.done(others[-1])
        assert [client.reset(each) for each in others] == [None] * 4 + [REFUSED_STREAM]
        assert all(client.goes_on(each) for each in [first, *others[:4]])
        assert client.goaways == []
        client.h2.reset_stream(others[0])
        # What was refused may be tried again.
        again = client.request("/s/paced")
        assert client.goes_on(again)
