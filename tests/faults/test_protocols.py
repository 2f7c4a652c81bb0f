"""How a client gets to its protocol, and what else it sees of either."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from faults.conftest import Serve
from faults.h1_client import H1Client
from faults.h2_client import H2Client
from faults.servers import Server

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def curl(server: Server, path: str, *options: str) -> str:
    """The version and status that curl got; the whole body must have come."""
    command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", *options]
    if server.certificate is not None:
        command += ["--cacert", str(server.certificate.authority)]
    done = subprocess.run(
        [*command, server.url + path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_curl
@pytest.mark.parametrize("path", ["/hi", "/s/paced?n=20"])
@pytest.mark.parametrize(
    ("options", "tls", "got"),
    [
        (["--http1.1"], False, "1.1 200"),
        (["--http2"], False, "2 200"),
        (["--http2-prior-knowledge"], False, "2 200"),
        (["--http1.1"], True, "1.1 200"),
        (["--http2"], True, "2 200"),
        (["--no-alpn"], True, "1.1 200"),
    ],
    ids=["h1", "upgrade", "prior knowledge", "tls h1", "tls alpn", "tls without alpn"],
)
def test_curl_gets_what_it_asks_for(
    serve: Serve, options: list[str], tls: bool, got: str, path: str
) -> None:
    assert curl(serve(tls=tls), path, *options) == got


@needs_curl
def test_a_request_with_a_body_is_not_upgraded(serve: Serve) -> None:
    assert curl(serve(), "/length", "--http2", "--data", "some") == "1.1 200"


@pytest.mark.fails_on_stock("the reason phrase is empty, and some clients count that as a failure")
def test_an_h1_answer_has_its_reason(serve: Serve) -> None:
    server = serve()
    with H1Client.open(server) as client:
        client.request("/hi")
        assert client.until(b"\r\n\r\n")
        assert client.status_line() == "HTTP/1.1 200 OK"
    with H1Client.open(server) as client:
        client.request("/nowhere")
        assert client.until(b"\r\n\r\n")
        assert client.status_line() == "HTTP/1.1 404 Not Found"


def test_no_header_of_the_connection_is_sent_on_h2(serve: Serve) -> None:
    server = serve()
    with H2Client.open(server) as client:
        # The library would end the connection over them.
        client.h2.config.validate_inbound_headers = False
        stream_id = client.request("/hop")
        assert client.done(stream_id)
        headers = client.headers(stream_id)
    assert headers["x-kept"] == "yes"
    assert not {"connection", "keep-alive", "transfer-encoding", "upgrade"} & set(headers)


@pytest.mark.parametrize("trailing", [b"", b"\x88", b"\x81\x02hi"], ids=["none", "byte", "frame"])
def test_a_websocket_handshake_with_bytes_behind_it(serve: Serve, trailing: bytes) -> None:
    server = serve()
    with H1Client.open(server) as client:
        client.request(
            "/ws",
            "GET",
            "upgrade: websocket",
            "connection: upgrade",
            "sec-websocket-version: 13",
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        )
        client.send(trailing)
        assert client.until(b"\r\n\r\n")
        assert client.status_line().split(" ")[1] == ("400" if trailing else "101")
    assert server.get("/hi") == b"hi"
