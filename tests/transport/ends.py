"""Both ends of one HTTP/2 connection without a socket: our send pass, and h2's client."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import DataFrame, Frame

from antiphon.transport.counted import Counted
from antiphon.transport.floods import Floods
from antiphon.transport.http2_connection import ServerH2
from antiphon.transport.http2_sending import Outgoing
from antiphon.transport.limits import Limits
from antiphon.transport.settings import HostConfig
from antiphon.transport.sink import Flushable, StepFlush
from antiphon.transport.wire import Wire
from transport.hosting import new_request_id
from transport.pipe import Pipe

KIB = 1024
GREAT = 2**31 - 1
WIDE = 2**29
"""A window that nothing here fills, and that two such settings do not bring above the greatest."""
LIMITS = Limits(stream_high=512 * KIB, connection_high=4096 * KIB, control_burst=10_000)


class ByHand(StepFlush):
    """Connections write when a test says so, and at no other time."""

    def mark(self, connection: Flushable) -> None:
        self._marked[connection] = None

    @property
    def idle(self) -> bool:
        return not self._marked

    @property
    def marked(self) -> bool:
        return bool(self._marked)


class Ends:
    """Both ends of one connection; what the client has not read yet is on its way."""

    def __init__(
        self,
        direct: bool,
        *,
        window: int = 65_535,
        limits: Limits = LIMITS,
        flushes: ByHand | None = None,
    ) -> None:
        self.flushes = flushes or ByHand()
        self.pipe = Pipe()
        config = HostConfig(new_request_id, limits, h2_direct_framing=direct, flush=self.flushes)
        counted = Counted()
        self.server = ServerH2(limits, counted, Floods(limits, counted, lambda: 0.0))
        self.failures = 0
        wire = Wire(self.pipe.writer, limits, lambda: None)
        self.outgoing = Outgoing(self.server, wire, config, self._fail)
        self.client = H2Connection(H2Configuration(client_side=True))
        self.client.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = window
        self.client.local_settings.acknowledge()
        self.events: list[Event] = []
        self.arrived = 0
        self.offered: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.stalled: list[int] = []
        """Streams whose client takes nothing."""
        self.over: set[int] = set()
        """Streams that one side has reset."""
        self.client.initiate_connection()
        self.server.initiate_connection()
        self.heard()
        self.outgoing.mark()
        self.flush()
        self.deliver()

    def _fail(self) -> None:
        self.failures += 1

    def open(self) -> int:
        """A new stream, with the head of its answer."""
        stream_id: int = self.client.get_next_available_stream_id()
        pseudo = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        self.client.send_headers(stream_id, pseudo, end_stream=True)
        self.heard()
        self.server.send_headers(stream_id, [(":status", "200")])
        self.outgoing.open(stream_id, partial(self.stalled.append, stream_id))
        self.outgoing.mark()
        self.offered[stream_id] = b""
        return stream_id

    def offer(self, stream_id: int, data: bytes) -> None:
        buffer = self.outgoing.buffer_of(stream_id)
        late = stream_id in self.ended
        if not buffer.closed and buffer.offer(data) and not late:
            self.offered[stream_id] += data
        self.outgoing.touch(stream_id)

    def end(self, stream_id: int, trailers: bool = False) -> None:
        buffer = self.outgoing.buffer_of(stream_id)
        if trailers:
            buffer.trailers = [(b"x-sum", b"%d" % len(self.offered[stream_id]))]
        buffer.end()
        self.ended.add(stream_id)
        self.outgoing.touch(stream_id)

    def reset(self, stream_id: int) -> None:
        """The server breaks off."""
        self.over.add(stream_id)
        try:
            self.server.reset_stream(stream_id)
        except ProtocolError:
            return  # it is over already
        self.outgoing.forget(stream_id)
        self.outgoing.mark()

    def leave(self, stream_id: int, *, known: bool) -> None:
        """The client resets, and what it has reset may not be ``known`` yet when the next is
        sent."""
        self.over.add(stream_id)
        try:
            self.client.reset_stream(stream_id)
        except ProtocolError:
            return
        self.heard()
        if known:
            self.outgoing.forget(stream_id)

    def more(self, stream_id: int, size: int) -> None:
        """The client opens a window, 0 is that of the connection."""
        if size <= 0:
            return
        try:
            self.client.increment_flow_control_window(size, stream_id or None)
        except ProtocolError:
            return
        self.heard()
        self.outgoing.window_opened(stream_id or None)

    def change(self, window: int, frame: int) -> None:
        """The client's settings."""
        self.client.update_settings(
            {SettingCodes.INITIAL_WINDOW_SIZE: window, SettingCodes.MAX_FRAME_SIZE: frame}
        )
        self.heard()
        self.outgoing.window_opened(None)
        self.outgoing.mark()

    def heard(self) -> None:
        """What the client has said arrives."""
        if data := self.client.data_to_send():
            self.server.receive_data(data)

    def flush(self) -> None:
        self.flushes.run()

    def flush_all(self) -> None:
        """Write as long as there is something that can be written."""
        while self.flushes.marked:
            self.flush()

    def deliver(self) -> list[Event]:
        """What is on its way arrives. The client raises for whatever breaks a rule: a window, or
        the size of a frame, or data after the end."""
        writes = self.pipe.writes
        new: list[Event] = []
        # One by one: h2 heeds a larger frame size only from the next piece that it is given.
        for frame in frames_of(b"".join(writes[self.arrived :])):
            new += self.client.receive_data(frame)
        self.arrived = len(writes)
        self.pipe.read(2**30)
        self.events += new
        self.heard()
        return new

    def settle(self) -> None:
        """The client takes everything, whatever it takes."""
        self.pipe.read_all()
        for _ in range(3):
            self.deliver()
            self.more(0, WIDE - self.client.inbound_flow_control_window)
            for stream_id in self.offered:
                manager = self.client.streams.get(stream_id)
                if manager is not None and not manager.closed:
                    self.more(stream_id, WIDE - manager.inbound_flow_control_window)
            while self.flushes.marked:
                self.flush()
                self.deliver()

    @property
    def windows(self) -> list[int]:
        """Of the server's end: of the connection, then of the streams."""
        streams = sorted(self.server.streams.items())
        return [
            self.server.outbound_flow_control_window,
            *(stream.outbound_flow_control_window for _, stream in streams),
        ]

    def of(self, kind: type[Event], stream_id: int) -> list[Any]:
        return [
            each
            for each in self.events
            if isinstance(each, kind) and getattr(each, "stream_id", None) == stream_id
        ]

    def body(self, stream_id: int) -> bytes:
        return b"".join(each.data for each in self.of(DataReceived, stream_id))


def frames_of(written: bytes) -> Iterator[bytes]:
    while written:
        length = 9 + int.from_bytes(written[:3])
        yield written[:length]
        written = written[length:]


def data_frames(written: bytes) -> list[tuple[int, bytes, bool]]:
    """(stream, data, whether it ends) of every DATA frame."""
    found = []
    for each in frames_of(written):
        frame, _ = Frame.parse_frame_header(memoryview(each[:9]))
        if isinstance(frame, DataFrame):
            found.append((frame.stream_id, each[9:], "END_STREAM" in frame.flags))
    return found


def opened(count: int, *, frame: int = 16_384, direct: bool = True, **how: Any) -> Ends:
    """``count`` streams whose windows are no limit, and nothing written yet."""
    ends = Ends(direct, window=GREAT, **how)
    ends.change(GREAT, frame)
    ends.more(0, GREAT - 65_535)
    for _ in range(count):
        ends.open()
    ends.flush()
    ends.deliver()
    ends.pipe.writes.clear()
    ends.arrived = 0
    return ends
