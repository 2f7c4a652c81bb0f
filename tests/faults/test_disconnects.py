"""A client of the real server that goes away: the engine works no more for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from faults.h1_client import H1Client
from faults.h2_client import CANCEL, H2Client
from faults.recordings import HOLD, write_recordings
from faults.servers import Certificate, Server, antiphon
from faults.test_handlers_end import ENDS

STEP_MS = 100
LONG = "long"
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": "hi"},
}
PROTOCOLS = pytest.mark.parametrize("protocol", ["h1", "h2"])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One for all: what a client leaves behind would be found by the next."""
    folder = tmp_path_factory.mktemp("recordings")
    write_recordings(folder, {LONG: 100_000, HOLD: 1})
    certificate: Certificate = request.getfixturevalue("certificate")
    with antiphon(
        folder, pace=f"{STEP_MS}ms", certificate=certificate if request.param else None
    ) as one:
        yield one
        assert one.logged() == []


def body(path: str, model: str, stream: bool) -> bytes:
    return json.dumps({**BODIES[path], "model": model, "stream": stream}).encode()


def running(server: Server) -> int:
    return int(server.metric("antiphon_requests_running"))


@PROTOCOLS
@pytest.mark.parametrize("how", [*ENDS, "stream reset"])
@pytest.mark.parametrize("model", [LONG, HOLD])
@pytest.mark.parametrize("path", BODIES)
def test_a_stream(server: Server, path: str, model: str, how: str, protocol: str) -> None:
    """``LONG`` is cut between two of its tokens, ``HOLD`` while it says nothing."""
    before = server.metric("antiphon_generation_tokens_total")
    if protocol == "h2":
        with H2Client.open(server) as client:
            stream_id = client.post(path, body(path, model, stream=True))
            assert client.until(lambda: b"w0" in client.body(stream_id))
            assert running(server) == 1
            seen = client.body(stream_id).count(b"data:")
            if how == "stream reset":
                client.h2.reset_stream(stream_id, CANCEL)
                client.flush()
            else:
                ENDS[how](client.socket)
            server.becomes(lambda: running(server), 0)
    elif how == "stream reset":
        pytest.skip("there are no streams")
    else:
        with H1Client.open(server) as plain:
            plain.request(path, "POST", body=body(path, model, stream=True))
            assert plain.until(b"w0")
            assert running(server) == 1
            seen = plain.raw.count(b"data:")
            ENDS[how](plain.socket)
            server.becomes(lambda: running(server), 0)
    # Of a step: what it had begun when the client left, and what it had on the way.
    made = server.metric("antiphon_generation_tokens_total") - before
    assert 1 <= made <= seen + 3


@PROTOCOLS
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("path", BODIES)
def test_who_waits_for_a_whole_body(server: Server, path: str, how: str, protocol: str) -> None:
    if protocol == "h2":
        with H2Client.open(server) as client:
            client.post(path, body(path, LONG, stream=False))
            server.becomes(lambda: running(server), 1)
            ENDS[how](client.socket)
            server.becomes(lambda: running(server), 0)
    else:
        with H1Client.open(server) as plain:
            plain.request(path, "POST", body=body(path, LONG, stream=False))
            server.becomes(lambda: running(server), 1)
            ENDS[how](plain.socket)
            server.becomes(lambda: running(server), 0)


@PROTOCOLS
def test_with_the_next_request_already_sent(server: Server, protocol: str) -> None:
    path = "/v1/chat/completions"
    if protocol == "h2":
        with H2Client.open(server) as client:
            client.post(path, body(path, HOLD, stream=True))
            client.post(path, body(path, LONG, stream=True))
            server.becomes(lambda: running(server), 2)
            client.socket.close()
            server.becomes(lambda: running(server), 0)
    else:
        with H1Client.open(server) as plain:
            plain.request(path, "POST", body=body(path, HOLD, stream=True))
            plain.request(path, "POST", body=body(path, LONG, stream=True))
            server.becomes(lambda: running(server), 1)
            plain.socket.close()
            server.becomes(lambda: running(server), 0)
