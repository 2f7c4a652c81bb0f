"""Many streams read at once, as cheaply as can be: frames by hand, and when each of them came."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import anyio
import attrs
import h11
from hpack import Decoder, Encoder

from faults.servers import Server

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
GREAT = 2**31 - 1
FIRST_WINDOW = 65535
PATIENCE_S = 120.0


@attrs.define
class Reading:
    """What one client has got. ``times`` are those of its events, by the monotonic clock."""

    reads: bool = True
    body: bytearray = attrs.field(factory=bytearray)
    times: list[float] = attrs.field(factory=list)
    status: int = 0
    ended: bool = False
    """As it must: by END_STREAM or the last chunk."""
    begun: asyncio.Event = attrs.field(factory=asyncio.Event)
    over: asyncio.Event = attrs.field(factory=asyncio.Event)

    def take(self, data: bytes) -> None:
        self.begun.set()
        self.body += data
        self.times.append(time.monotonic())

    def close(self, ended: bool) -> None:
        self.ended = self.ended or ended
        self.begun.set()
        self.over.set()

    @property
    def gaps(self) -> list[float]:
        """Seconds between one event and the next."""
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


class H2Readers(asyncio.Protocol):
    """One HTTP/2 connection with any number of streams."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._encoder, self._decoder = Encoder(), Decoder()
        self._next = 1
        self._unread = bytearray()
        self.readings: dict[int, Reading] = {}
        self.goaways: list[int] = []
        self.lost = asyncio.Event()

    async def connect(self) -> H2Readers:
        certificate = self._server.certificate
        await asyncio.get_running_loop().create_connection(
            lambda: self,
            "127.0.0.1",
            self._server.port,
            ssl=certificate.context("h2") if certificate else None,
            server_hostname="127.0.0.1" if certificate else None,
        )
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(PREFACE + _frame(SETTINGS, 0, 0, b"") + _window(0, GREAT - FIRST_WINDOW))

    def request(self, path: str, body: bytes = b"", *, reads: bool = True) -> Reading:
        """A GET, or with a body a POST. One that does not read never opens its first window."""
        stream_id, self._next = self._next, self._next + 2
        reading = self.readings[stream_id] = Reading(reads)
        method = "POST" if body else "GET"
        head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        if body:
            head += [("content-type", "application/json"), ("content-length", str(len(body)))]
        flags = END_HEADERS | (0 if body else END_STREAM)
        data = _frame(HEADERS, flags, stream_id, self._encoder.encode(head))
        if body:
            data += _frame(DATA, END_STREAM, stream_id, body)
        self.transport.write(data)
        if reads:
            self.open_window(stream_id)
        return reading

    def open_window(self, stream_id: int) -> None:
        """Let all come that a stream has."""
        self.transport.write(_window(stream_id, GREAT - FIRST_WINDOW))

    def open_windows(self) -> None:
        """Of the streams that did not read."""
        for stream_id, reading in self.readings.items():
            if not reading.reads:
                self.open_window(stream_id)

    def data_received(self, data: bytes) -> None:
        unread = self._unread
        unread += data
        at = 0
        while len(unread) - at >= 9:
            high, low, kind, flags, stream_id = struct.unpack_from(">BHBBL", unread, at)
            end = at + 9 + (high << 16) + low
            if end > len(unread):
                break
            self._frame(kind, flags, stream_id, bytes(unread[at + 9 : end]))
            at = end
        del unread[:at]

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        reading = self.readings.get(stream_id)
        if kind == HEADERS:
            fields = dict(self._decoder.decode(payload, raw=True))
            if reading is not None and b":status" in fields:
                reading.status = int(fields[b":status"])
        if reading is not None:
            if kind == DATA and payload:
                reading.take(payload)
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                reading.close(ended=True)
            elif kind == RST_STREAM:
                reading.close(ended=False)
        elif kind == PING and not flags & ACK:
            self.transport.write(_frame(PING, ACK, 0, payload))
        elif kind == SETTINGS and not flags & ACK:
            self.transport.write(_frame(SETTINGS, ACK, 0, b""))
        elif kind == GOAWAY:
            self.goaways.append(struct.unpack_from(">LL", payload)[1])

    def connection_lost(self, _error: Exception | None) -> None:
        for reading in self.readings.values():
            reading.close(ended=False)
        self.lost.set()


class H1Reader(asyncio.Protocol):
    """One HTTP/1.1 connection with one request."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._h11 = h11.Connection(h11.CLIENT)
        self.reading = Reading()
        self.lost = asyncio.Event()

    async def connect(self, receive_buffer: int | None = None) -> H1Reader:
        certificate = self._server.certificate
        sock = self._server.connect("http/1.1", receive_buffer=receive_buffer, plain=True)
        sock.setblocking(False)
        await asyncio.get_running_loop().create_connection(
            lambda: self,
            sock=sock,
            ssl=certificate.context("http/1.1") if certificate else None,
            server_hostname="127.0.0.1" if certificate else None,
        )
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def request(self, path: str, body: bytes = b"", *, reads: bool = True) -> Reading:
        """A GET, or with a body a POST. One that does not read leaves all in the socket."""
        headers = [("host", "x")]
        if body:
            headers += [("content-type", "application/json"), ("content-length", str(len(body)))]
        head = h11.Request(method="POST" if body else "GET", target=path, headers=headers)
        events = [head, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
        self.transport.write(b"".join(self._h11.send(event) or b"" for event in events))
        if not reads:
            self.transport.pause_reading()
        return self.reading

    def open_windows(self) -> None:
        """Read, if it did not."""
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._h11.receive_data(data)
        while not self.reading.over.is_set():
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                break
            if isinstance(event, h11.Response):
                self.reading.status = event.status_code
            elif isinstance(event, h11.Data):
                self.reading.take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self.reading.close(ended=True)

    def connection_lost(self, _error: Exception | None) -> None:
        self.reading.close(ended=False)
        self.lost.set()


@attrs.define
class Crowd:
    """Clients of one server that leave together."""

    server: Server
    _clients: list[H2Readers | H1Reader] = attrs.field(factory=list)

    async def h2(self) -> H2Readers:
        """A new HTTP/2 connection."""
        client = await H2Readers(self.server).connect()
        self._clients.append(client)
        return client

    async def h1(self, receive_buffer: int | None = None) -> H1Reader:
        """A new HTTP/1.1 connection."""
        client = await H1Reader(self.server).connect(receive_buffer)
        self._clients.append(client)
        return client

    async def leave(self) -> None:
        """Close all connections at once."""
        for client in self._clients:
            client.transport.abort()
        for client in self._clients:
            await client.lost.wait()


@asynccontextmanager
async def crowd(server: Server) -> AsyncIterator[Crowd]:
    """Clients for a block."""
    clients = Crowd(server)
    try:
        yield clients
    finally:
        await clients.leave()


def said(reading: Reading) -> str:
    """The text of a chat stream, which must have ended as it must."""
    assert reading.status == 200
    assert reading.ended
    return text_of(bytes(reading.body))


def text_of(body: bytes) -> str:
    """The text of a whole chat stream."""
    lines = body.decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = (json.loads(line.removeprefix("data: ")) for line in lines[:-2] if line[0] != ":")
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


async def all_begun(readings: Iterable[Reading]) -> None:
    """Wait until each has its first event, or has ended without."""
    with suppress(TimeoutError), anyio.fail_after(PATIENCE_S):
        for reading in readings:
            await reading.begun.wait()


async def all_over(readings: Iterable[Reading]) -> None:
    """Wait until each has ended, one way or another."""
    with suppress(TimeoutError), anyio.fail_after(PATIENCE_S):
        for reading in readings:
            await reading.over.wait()


def _frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    size = len(payload)
    return struct.pack(">BHBBL", size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


def _window(stream_id: int, size: int) -> bytes:
    return _frame(WINDOW_UPDATE, 0, stream_id, struct.pack(">L", size))
