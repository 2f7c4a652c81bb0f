"""A model hub on this machine: the few routes that the client asks, over real HTTP."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import attrs

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@attrs.define
class Fault:
    """How the hub answers one request instead of well."""

    status: int = 200
    code: str = ""
    """The hub's own name for the error, which comes in a header."""
    cut_after: int | None = None
    """Bytes of the body that are sent before the connection breaks."""
    stalls: bool = False
    """After that the hub waits for the client to go away."""
    body: bytes | None = None
    """What is sent instead of the content."""


@attrs.define
class FakeHub:
    """One repository, ``org/tiny``, with its files, its faults, and what was asked of it."""

    url: str = ""
    files: dict[str, bytes] = attrs.field(factory=dict)
    large: set[str] = attrs.field(factory=set)
    """The files that come with a sha256, as large ones do; the others with git's sha1."""
    commit: str = COMMIT
    token: str | None = None
    faults: dict[str, list[Fault]] = attrs.field(factory=dict)
    """By ``api`` or the file's name: one a request, until there is none left."""
    asked: list[tuple[str, str | None]] = attrs.field(factory=list)
    """Path and ``Range`` of every request, in order."""

    stalled: threading.Event = attrs.field(factory=threading.Event)
    """Set when an answer stalls."""

    def siblings(self) -> list[dict[str, object]]:
        return [self._sibling(name, content) for name, content in self.files.items()]

    def _sibling(self, name: str, content: bytes) -> dict[str, object]:
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": blob}
        if name in self.large:
            digest = hashlib.sha256(content).hexdigest()
            entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
        return entry

    def ranges(self, name: str) -> list[str | None]:
        return [asked for path, asked in self.asked if path.endswith("/" + name)]


@contextmanager
def serving() -> Iterator[FakeHub]:
    """A hub on a free port, until the block ends."""
    hub = FakeHub()

    class Handler(_Handler):
        fake = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeHub

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.fake.asked.append((path, self.headers["Range"]))
        if self.fake.token and self.headers["Authorization"] != f"Bearer {self.fake.token}":
            return self._refuse(401, "RepoNotFound")
        info = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        found = info or file
        if found is None or found[1] != "org/tiny":
            return self._refuse(401, "RepoNotFound")
        if found[2] not in ("main", "v1/beta", self.fake.commit):
            return self._refuse(404, "RevisionNotFound")
        return self._info() if file is None else self._file(file[3])

    def _info(self) -> None:
        answer = {"id": "org/tiny", "sha": self.fake.commit, "siblings": self.fake.siblings()}
        fault = self._fault("api")
        if fault.status != 200:
            return self._refuse(fault.status, fault.code)
        return self._send(200, fault.body or json.dumps(answer).encode(), {}, fault.cut_after)

    def _file(self, name: str) -> None:
        fault = self._fault(name)
        if fault.status != 200:
            return self._refuse(fault.status, fault.code)
        content = fault.body if fault.body is not None else self.fake.files[name]
        start, headers, status = 0, {}, 200
        if asked := self.headers["Range"]:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            status = 206
        self._send(status, content[start:], headers, fault.cut_after)
        if fault.stalls:
            self.wfile.flush()
            self.fake.stalled.set()
            self.rfile.read(1)
        return None

    def _fault(self, name: str) -> Fault:
        faults = self.fake.faults.get(name)
        return faults.pop(0) if faults else Fault()

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code} if code else {})

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], cut_after: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut_after])
        if cut_after is not None:
            self.close_connection = True
