"""An HTTP/2 client on the ``h2`` library that also sends what no client should."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import attrs
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame, GoAwayFrame

from faults.servers import Server

GREAT = 2**31 - 1
REFUSED_STREAM, CANCEL, INTERNAL_ERROR, ENHANCE_YOUR_CALM = 7, 8, 2, 11
E = TypeVar("E", bound=events.Event)


class PatientConnection(H2Connection):
    """Reads on after a GOAWAY, as a client must (RFC 9113, section 6.8); h2 itself would not."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[events.Event]]:
        before = self.state_machine.state
        result = super()._receive_goaway_frame(frame)
        self.state_machine.state = before
        return result


@attrs.define
class H2Client:
    """One connection. ``seen`` is all that has been read so far, in order.

    ``takes`` False: what is read gives the server no new window.
    """

    server: Server
    socket: socket.socket
    h2: H2Connection
    takes: bool = True
    seen: list[events.Event] = attrs.field(factory=list)
    eof: bool = False
    deaf: bool = False
    """Whether the server takes nothing more; what it has sent can be read yet."""

    @classmethod
    @contextmanager
    def open(
        cls,
        server: Server,
        window: int | None = None,
        connection_window: int | None = GREAT,
        takes: bool = True,
    ) -> Iterator[H2Client]:
        """By prior knowledge, or by ALPN over TLS. The windows are those of the first settings."""
        h2 = PatientConnection(H2Configuration(client_side=True))
        if window is not None:
            first = {SettingCodes.INITIAL_WINDOW_SIZE: window}
            h2.local_settings = Settings(client=True, initial_values=first)
        h2.initiate_connection()
        if connection_window is not None:
            h2.increment_flow_control_window(connection_window - 65535)
        with server.connect("h2") as sock:
            client = cls(server, sock, h2, takes)
            client.flush()
            yield client

    def flush(self) -> None:
        self.send(self.h2.data_to_send())

    def send(self, data: bytes) -> None:
        """Bytes as they are, past the library."""
        try:
            self.socket.sendall(data)
        except OSError:
            self.deaf = True

    def queue(
        self,
        path: str,
        method: str = "GET",
        *,
        end: bool = True,
        headers: Iterable[tuple[str, str]] = (),
    ) -> int:
        """A request, not sent before the next ``flush``; its stream."""
        stream_id: int = self.h2.get_next_available_stream_id()
        scheme = "https" if self.server.certificate else "http"
        pseudo = [(":method", method), (":path", path), (":scheme", scheme), (":authority", "x")]
        self.h2.send_headers(stream_id, [*pseudo, *headers], end_stream=end)
        return stream_id

    def request(
        self,
        path: str,
        method: str = "GET",
        *,
        end: bool = True,
        headers: Iterable[tuple[str, str]] = (),
    ) -> int:
        stream_id = self.queue(path, method, end=end, headers=headers)
        self.flush()
        return stream_id

    def post(self, path: str, body: bytes) -> int:
        """A request with a small JSON body."""
        stream_id = self.queue(
            path, "POST", end=False, headers=[("content-type", "application/json")]
        )
        self.h2.send_data(stream_id, body, end_stream=True)
        self.flush()
        return stream_id

    def upload(self, stream_id: int, body: bytes) -> None:
        """Send ``body`` as the server's windows allow, until a reset or the end of it."""
        while body and not self.deaf and self.reset(stream_id) is None:
            room = min(
                self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size
            )
            if room <= 0:
                assert self.read(), "the server gives no window"
                continue
            self.h2.send_data(stream_id, body[:room])
            body = body[room:]
            self.flush()

    def let_go_of_the_limit(self) -> None:
        """Open more streams than the server allows."""
        self.h2.remote_settings = Settings(
            client=False, initial_values={SettingCodes.MAX_CONCURRENT_STREAMS: 10**6}
        )

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
        if not data:
            self.eof = True
            return False
        new = self.h2.receive_data(data)
        if self.takes:
            for event in new:
                if isinstance(event, events.DataReceived):
                    self._acknowledge(event)
        self.seen += new
        self.flush()
        return True

    def _acknowledge(self, event: events.DataReceived) -> None:
        with suppress(ProtocolError):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def until(self, condition: Callable[[], bool]) -> bool:
        """Read until ``condition()``; False when that does not come."""
        end = time.monotonic() + self.server.guard_s
        while not condition():
            if time.monotonic() > end or not self.read():
                return condition()
        return True

    def done(self, *stream_ids: int) -> bool:
        """Read until all of these are over; False if one is not."""
        return self.until(lambda: all(map(self.over, stream_ids)))

    def answered(self, stream_id: int) -> bool:
        """Read until the stream has its head; False if it gets none."""
        return self.until(lambda: self.over(stream_id) or self.status(stream_id) is not None)

    def round_trip(self) -> None:
        """Wait until the server has read all that was sent, or has ended the connection."""
        acks = len(self.of(events.PingAckReceived))
        self.h2.ping(b"\0" * 8)
        self.flush()
        self.until(lambda: self.eof or len(self.of(events.PingAckReceived)) > acks)

    def read_to_end(self) -> bool:
        """Read until the server closes the connection; False if it does not."""
        return self.until(lambda: self.eof)

    def of(self, kind: type[E], stream_id: int | None = None) -> list[E]:
        return [
            event
            for event in self.seen
            if isinstance(event, kind)
            and (stream_id is None or getattr(event, "stream_id", None) == stream_id)
        ]

    def ended(self, *stream_ids: int) -> bool:
        return all(self.of(events.StreamEnded, each) for each in stream_ids)

    def over(self, stream_id: int) -> bool:
        """Ended, reset, or gone with the connection."""
        return self.eof or self.ended(stream_id) or self.reset(stream_id) is not None

    def begun(self, *stream_ids: int) -> bool:
        return all(self.of(events.DataReceived, each) for each in stream_ids)

    def body(self, stream_id: int) -> bytes:
        return b"".join(each.data for each in self.of(events.DataReceived, stream_id))

    def status(self, stream_id: int) -> str | None:
        return self.headers(stream_id).get(":status")

    def headers(self, stream_id: int) -> dict[str, str]:
        for event in self.of(events.ResponseReceived, stream_id):
            return {bytes(name).decode(): bytes(value).decode() for name, value in event.headers}
        return {}

    def reset(self, stream_id: int) -> int | None:
        """The code of the server's RST_STREAM, if there was one."""
        codes = [int(each.error_code or 0) for each in self.of(events.StreamReset, stream_id)]
        return codes[0] if codes else None

    @property
    def goaways(self) -> list[int]:
        return [int(each.error_code or 0) for each in self.of(events.ConnectionTerminated)]

    def goes_on(self, stream_id: int) -> bool:
        """Whether the stream still gets data: more than what was on its way already."""
        before = len(self.body(stream_id))
        return self.until(lambda: len(self.body(stream_id)) > before + 100)

    def get(self, path: str) -> bytes:
        """The body of a whole answer."""
        stream_id = self.request(path)
        assert self.until(lambda: self.over(stream_id)), "no answer"
        assert self.ended(stream_id), f"reset {self.reset(stream_id)}, goaways {self.goaways}"
        return self.body(stream_id)
