"""A client and a server of every kind: HTTP/1.0, HTTP/1.1 and HTTP/2, plain and over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import attrs
from h2.config import H2Configuration
from h2.errors import ErrorCodes

from antiphon.transport.ending import Ending
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.settings import HostConfig
from transport.hosting import (
    GUARD_S,
    H1Client,
    H2Client,
    PatientH2,
    certificate,
    new_request_id,
    serving_on,
)
from transport.streaming import Streaming

Kind: TypeAlias = Literal["http/1.0", "http/1.1", "h2", "http/1.1 tls", "h2 tls"]
KINDS: list[Kind] = ["http/1.0", "http/1.1", "h2", "http/1.1 tls", "h2 tls"]


@attrs.frozen
class Answered:
    """What a client got: ``whole`` if the body has ended as one must."""

    status: int
    body: bytes
    whole: bool
    reset: int | None = None


@attrs.define
class Client:
    """One request on a connection of its own, of any kind."""

    h1: H1Client | None
    h2: H2Client | None
    stream: int
    version: bytes
    read: bytes = b""

    @property
    def _http2(self) -> H2Client:
        assert self.h2 is not None
        return self.h2

    @property
    def writer(self) -> asyncio.StreamWriter:
        client = self.h1 or self.h2
        assert client is not None
        return client.writer

    async def until(self, mark: bytes) -> None:
        """Read until the answer has brought ``mark``."""
        if self.h1 is not None:
            self.read = await self.h1.until(mark)
        else:
            h2 = self._http2
            await h2.read_until(lambda: mark in h2.body(self.stream))

    async def answer(self) -> Answered:
        """Read to the end of the answer, however it ends."""
        if self.h1 is not None:
            with suppress(ConnectionError):
                self.read += await self.h1.rest()
            return parsed(self.read, self.version)
        h2 = self._http2
        with anyio.fail_after(GUARD_S):
            while not h2.ended(self.stream) and h2.reset(self.stream) is None and await h2.read():
                pass
        status = int(h2.status(self.stream) or 0)
        ended, reset = h2.ended(self.stream), h2.reset(self.stream)
        return Answered(status, h2.body(self.stream), ended, reset)

    def leave(self) -> None:
        """Reset the stream, or the connection where that is the only way."""
        if self.h2 is not None:
            self.h2.h2.reset_stream(self.stream, ErrorCodes.CANCEL)
            self.writer.write(self.h2.h2.data_to_send())
        else:
            self.writer.transport.abort()


def parsed(read: bytes, version: bytes) -> Answered:
    """An HTTP/1 answer without a length."""
    head, _, rest = read.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head else 0
    if version == b"1.0":
        assert b"transfer-encoding" not in head.lower()
        return Answered(status, rest, whole=True)  # nobody can tell
    assert b"transfer-encoding: chunked" in head.lower() or not head
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        chunk, rest = rest[:length], rest[length:]
        if not length:
            assert rest == b"\r\n"
            return Answered(status, body, whole=True)
        assert len(chunk) < length or rest[:2] in {b"\r\n", b"\r", b""}
        body, rest = body + chunk, rest[2:]
    return Answered(status, body, whole=False)


@attrs.define
class House:
    """A server and what it takes to be its client."""

    kind: Kind
    app: Streaming
    config: HostConfig
    trust: Any = None

    @asynccontextmanager
    async def client(self, method: str = "GET", path: str = "/") -> AsyncIterator[Client]:
        http2 = self.kind.startswith("h2")
        if self.trust is not None:
            self.trust.set_alpn_protocols(["h2" if http2 else "http/1.1"])
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.app.listener.port, ssl=self.trust
        )
        try:
            if http2:
                h2 = H2Client(reader, writer, PatientH2(H2Configuration(client_side=True)))
                h2.h2.initiate_connection()
                yield Client(None, h2, await h2.request(path, method), b"2")
            else:
                version = self.kind[5:8].encode()
                h1 = H1Client(reader, writer)
                head = b"%s %s HTTP/%s\r\nhost: x\r\nconnection: close\r\n\r\n"
                await h1.send(head % (method.encode(), path.encode(), version))
                yield Client(h1, None, 1, version)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def housed(
    kind: Kind, tmp_path: Path, limits: Limits = DEFAULT_LIMITS, stop: Ending | None = None
) -> AsyncIterator[House]:
    cert, trust = certificate(tmp_path) if kind.endswith("tls") else (None, None)
    app = Streaming(cert)
    config = HostConfig(new_request_id, limits)
    async with serving_on(app, [app.listener], config, stop=stop):
        yield House(kind, app, config, trust)
