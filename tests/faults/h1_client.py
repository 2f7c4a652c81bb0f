"""An HTTP/1.1 client that is a socket, and reads answers with ``h11``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import h11

from faults.servers import Server


@attrs.define
class H1Client:
    """One connection. ``raw`` is all that has been read, ``eof`` whether it has ended."""

    server: Server
    socket: socket.socket
    raw: bytearray = attrs.field(factory=bytearray)
    eof: bool = False

    @classmethod
    @contextmanager
    def open(cls, server: Server, receive_buffer: int | None = None) -> Iterator[H1Client]:
        with server.connect("http/1.1", receive_buffer=receive_buffer) as sock:
            yield cls(server, sock)

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.eof = True

    def request(self, path: str, method: str = "GET", *headers: str, body: bytes = b"") -> None:
        lines = [f"{method} {path} HTTP/1.1", "host: x", *headers]
        if body:
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        self.send("\r\n".join([*lines, "", ""]).encode() + body)

    def read(self) -> bool:
        """Take what arrives next; False at the end of the connection, and after the guard."""
        if self.eof:
            return False
        try:
            data = self.socket.recv(2**18)
        except TimeoutError:
            return False
        except OSError:
            data = b""
        self.eof = not data
        self.raw += data
        return not self.eof

    def until(self, mark: bytes) -> bool:
        """Read until ``mark`` has come; False when it does not."""
        while mark not in self.raw:
            if not self.read():
                return False
        return True

    def read_to_end(self) -> bool:
        """Read until the server closes the connection; False if it does not."""
        while self.read():
            pass
        return self.eof

    def goes_on(self) -> bool:
        """Whether more arrives than what was on its way already."""
        before = len(self.raw)
        while len(self.raw) <= before + 100:
            if not self.read():
                return False
        return True

    def status_line(self) -> str:
        return bytes(self.raw).split(b"\r\n", 1)[0].decode()

    def answer(self, method: str = "GET") -> tuple[int, bytes] | None:
        """(status, body) of the first whole answer that has been read, which is taken away.

        None: it has not ended as it must. Reads on as far as is needed.
        """
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        connection.send(h11.EndOfMessage())
        if self.raw:
            connection.receive_data(bytes(self.raw))
        status, body = 0, bytearray()
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError:
                return None
            if event is h11.NEED_DATA:
                before = len(self.raw)
                more = self.read()
                if not more and not self.eof:
                    return None
                connection.receive_data(bytes(self.raw[before:]))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                self.raw = bytearray(connection.trailing_data[0])
                return status, bytes(body)
            elif isinstance(event, h11.ConnectionClosed):
                return None
