"""SIGTERM while streams are open: they end as they would have, or are told that they do not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from h2 import events

from faults.application import frame_of
from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import H2Client
from faults.recordings import HOLD, write_recordings
from faults.servers import Certificate, Server, antiphon, chat

TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
COUNT = 100


def whole() -> bytes:
    return b"".join(frame_of("paced", number) for number in range(COUNT))


@pytest.mark.parametrize(
    "mode",
    [
        "paced",
        pytest.param(
            "tail",
            marks=pytest.mark.fails_on_stock(
                "END_STREAM is lost when the last frame has left before it"
            ),
        ),
    ],
)
def test_a_stream_on_h2_has_its_end(serve: Serve, mode: str) -> None:
    server = serve(grace_s=20)
    with H2Client.open(server) as client:
        stream_id = client.request(f"/s/{mode}?n={COUNT}")
        assert client.until(lambda: client.begun(stream_id))
        server.terminate()
        assert client.done(stream_id)
        assert client.ended(stream_id)
        assert client.body(stream_id) == whole()
        assert client.read_to_end()
    kinds = [type(event) for event in client.seen]
    assert kinds.index(events.StreamEnded) < kinds.index(events.ConnectionTerminated)
    assert client.goaways == [0]
    assert server.status() == 0


@TLS
@pytest.mark.parametrize("path", ["/s/paced", "/sink/paced"])
def test_both_ways_of_sending_end_both_protocols(serve_ours: Serve, path: str, tls: bool) -> None:
    server = serve_ours(grace_s=20, tls=tls)
    with H2Client.open(server) as client, H1Client.open(server) as plain:
        stream_id = client.request(f"{path}?n={COUNT}")
        plain.request(f"{path}?n={COUNT}")
        assert client.until(lambda: client.begun(stream_id))
        server.terminate()
        assert client.done(stream_id)
        assert client.ended(stream_id)
        assert client.body(stream_id) == whole()
        assert plain.answer() == (200, whole())
        assert client.read_to_end()
        assert plain.read_to_end()
    assert client.goaways == [0]
    assert server.status() == 0


@needs_curl
@pytest.mark.parametrize("options", [["--http1.1"], ["--http2-prior-knowledge"], ["--http2"]])
@TLS
def test_curl_has_its_end(serve_ours: Serve, options: list[str], tls: bool, tmp_path: Path) -> None:
    server = serve_ours(grace_s=20, tls=tls)
    command = ["curl", "-sS", "-N", *options, f"{server.url}/s/paced?n={COUNT}"]
    if server.certificate is not None:
        command += ["--cacert", str(server.certificate.authority)]
    body = tmp_path / "body"
    with body.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        server.becomes(lambda: body.stat().st_size > 0, True)
        server.terminate()
        _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error.decode()
    assert body.read_bytes() == whole()
    assert server.status() == 0


@pytest.mark.fails_on_stock("a stream that is cut has no reset, and the exit status is 1")
def test_a_stream_beyond_the_grace_is_reset_on_h2(serve: Serve) -> None:
    server = serve(grace_s=0.3)
    with H2Client.open(server) as client:
        stream_id = client.request("/s/paced")
        assert client.until(lambda: client.begun(stream_id))
        server.terminate()
        assert client.done(stream_id)
        assert client.reset(stream_id) is not None
        assert client.read_to_end()
    assert server.status() == 0


@pytest.mark.fails_on_stock(
    "it waits for its connections, and they for it", condition=sys.version_info >= (3, 12)
)
def test_a_stream_beyond_the_grace_is_cut_on_h1(serve: Serve) -> None:
    server = serve(grace_s=0.3)
    with H1Client.open(server) as client:
        client.request("/s/paced")
        assert client.until(b"data: 0\n\n")
        server.terminate()
        assert client.answer() is None
        assert client.eof
    assert server.status() == 0


@pytest.mark.parametrize("path", ["/s/flood", "/sink/flood"])
def test_who_does_not_read_holds_nothing_up(serve_ours: Serve, path: str) -> None:
    server = serve_ours(grace_s=0.3)
    with H2Client.open(server, takes=False) as client, H1Client.open(server) as plain:
        client.request(path)
        plain.request(path)
        server.settles(lambda: server.tally()["produced"], 10_000_000)
        server.terminate()
        assert server.status() == 0


@TLS
def test_who_was_told_to_leave_and_stays_holds_nothing_up(serve_ours: Serve, tls: bool) -> None:
    """Over TLS the end of a connection is answered by the client, or not."""
    server = serve_ours(grace_s=600, tls=tls)
    with H1Client.open(server) as client:
        client.request("/hi", "GET", "connection: close")
        assert client.answer() == (200, b"hi")
        server.terminate()
        assert server.status() == 0


@contextmanager
def product(tmp_path: Path, drain_s: str, certificate: Certificate | None) -> Iterator[Server]:
    """The real server with a model that never stops by itself, and one that does."""
    write_recordings(tmp_path, {"short": 60, HOLD: 3})
    arguments = ("--drain-timeout", drain_s)
    with antiphon(tmp_path, *arguments, pace="20ms", certificate=certificate) as server:
        yield server


@TLS
def test_a_draining_server(tmp_path: Path, certificate: Certificate, tls: bool) -> None:
    """The open answer ends by itself; meanwhile probes are served and new work is refused."""
    with (
        product(tmp_path, "60", certificate if tls else None) as server,
        H2Client.open(server) as client,
        H1Client.open(server) as plain,
    ):
        live = client.post("/v1/chat/completions", chat("short"))
        assert client.until(lambda: client.begun(live))
        server.terminate()
        server.becomes(lambda: ready(server), 503)
        refused = client.post("/v1/chat/completions", chat("short"))
        assert client.done(refused)
        headers = client.headers(refused)
        assert headers[":status"] == "503"
        assert int(headers["retry-after"]) >= 1
        assert headers["x-should-retry"] == "true"
        assert json.loads(client.body(refused))["error"]["code"] == "shutting_down"
        assert b'"plain/' not in client.get("/metrics")
        plain.request("/v1/chat/completions", "POST", body=chat("short"))
        assert plain.until(b"\r\n\r\n")
        head = bytes(plain.raw).partition(b"\r\n\r\n")[0].lower()
        assert head.startswith(b"http/1.1 503 ")
        assert b"connection: close" in head
        assert client.done(live)
        assert client.ended(live)
        assert client.body(live).endswith(b"data: [DONE]\n\n")
        assert client.body(live).count(b'"content":"w') == 60
        assert client.read_to_end()
        kinds = [type(event) for event in client.seen]
        assert kinds[::-1].index(events.StreamEnded) > kinds[::-1].index(
            events.ConnectionTerminated
        )
        assert client.goaways == [0]
        assert server.status() == 0


def ready(server: Server) -> int:
    """The status of the readiness probe, on a new connection."""
    with H1Client.open(server) as client:
        client.request("/ready", "GET", "connection: close")
        answer = client.answer()
        assert answer is not None
        return answer[0]


@TLS
def test_at_the_deadline_answers_are_failed(
    tmp_path: Path, certificate: Certificate, tls: bool
) -> None:
    body = json.dumps({"model": HOLD, "stream": True, "input": "hi"}).encode()
    with (
        product(tmp_path, "0.5", certificate if tls else None) as server,
        H2Client.open(server) as client,
        H1Client.open(server) as plain,
    ):
        live = client.post("/v1/responses", body)
        plain.request("/v1/responses", "POST", body=body)
        assert client.until(lambda: client.begun(live))
        assert plain.until(b"response.created")
        server.terminate()
        assert client.done(live)
        assert client.ended(live)
        answer = plain.answer()
        assert answer is not None
        for shown in (client.body(live), answer[1]):
            assert b"event: response.failed\n" in shown
            assert b"shutting down" in shown
            assert shown.endswith(b"data: [DONE]\n\n")
        assert server.status() == 0
