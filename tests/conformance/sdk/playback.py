"""A bare HTTP server that answers with golden bytes, and nothing else.

Its paths are those of the API, behind a prefix that names the case:
``/<endpoint>/<family>/<what>/v1/…``. The body comes a few bytes a chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from conformance.sdk.goldens import GOLDENS, Golden

SPLIT = 127
"""Bytes a chunk: splits lines and characters, at other places in every frame."""


class Playback(BaseHTTPRequestHandler):
    """Whatever is asked, the case's stream is the answer."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """All requests of a connection. A client may leave early: an SDK does at an error."""
        with suppress(ConnectionError):
            super().handle()

    def _answer(self) -> None:
        _, endpoint, family, what, *_ = self.path.split("/")
        stream = GOLDENS[endpoint][f"{family}/{what}"].stream  # type: ignore[index]  # from a URL
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        chunks = [stream[at : at + SPLIT] for at in range(0, len(stream), SPLIT)]
        self.wfile.write(b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = _answer  # noqa: N815  # the names that http.server calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name
        """Tests are quiet."""


@contextmanager
def serving_goldens() -> Iterator[str]:
    """The server's address, while it runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Playback) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def api_of(address: str, golden: Golden) -> str:
    """The base URL under which every answer is this case's stream."""
    return f"{address}/{golden.endpoint}/{golden.case}/v1"
