"""The event stream that an HTTP/1.1 connection sends: chunks of frames (RFC 9112, section 7.1).

h11 makes the head, and the end of the body; it does not change its state for what is in between.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs
import h11
from hypercorn.protocol.h11 import H11WSConnection

from antiphon.transport.buffer_sink import BufferSink
from antiphon.transport.send_buffer import Chunk, Load, SendBuffer
from antiphon.transport.settings import HostConfig
from antiphon.transport.wire import HIGH, Wire

H11Connection: TypeAlias = h11.Connection | H11WSConnection
"""What Hypercorn holds; of a websocket nothing comes here."""


class Frames:
    """What one connection has to send of the answer that it gives now."""

    def __init__(self, config: HostConfig, wire: Wire) -> None:
        # What is written and unsent belongs to this answer as well.
        self._limits = attrs.evolve(
            config.limits,
            stream_high=max(config.limits.stream_low, config.limits.stream_high - HIGH),
        )
        self._counted = config.counted
        self._flushes = config.flush
        self._wire = wire
        wire.on_drained = self.mark
        self._buffer: SendBuffer | None = None
        self._connection: H11Connection | None = None
        self._chunked = True

    def begin(self, connection: H11Connection, request: h11.Request) -> BufferSink:
        """The sink of the answer to ``request``."""
        # That the client takes nothing is seen by the socket, which holds no other answer.
        self._buffer = SendBuffer(self._limits, Load(self._limits, self._counted), lambda: None)
        self._connection = connection
        # An older client reads to the end of the connection.
        self._chunked = request.http_version > b"1.0"
        return BufferSink("h1", self._buffer, self.mark, self._break_off)

    def mark(self) -> None:
        """Let the connection be written to soon."""
        if not self._wire.full:
            self._flushes.mark(self)

    def close(self) -> None:
        """The answer is over, whether it has ended or not."""
        if self._buffer is not None:
            self._buffer.close()

    def flush(self) -> None:
        """Write the frames that are queued, and the end of the body after them."""
        buffer = self._buffer
        if buffer is None or buffer.closed:
            return
        if self._wire.closing:
            self.close()  # Nobody reads it, and who makes it has to hear of that.
            return
        if self._wire.full:
            return
        out: list[Chunk] = []
        if size := buffer.size:
            chunks = buffer.take(size)
            out = [b"%x\r\n" % size, *chunks, b"\r\n"] if self._chunked else chunks
        if buffer.complete:
            try:
                out.append(self._end())
            except h11.LocalProtocolError:
                self._break_off()  # What else has been sent on this connection is no answer.
                return
            buffer.sent_end = True
        self._wire.write(b"".join(out))
        if buffer.sent_end:
            buffer.close()

    def _end(self) -> bytes:
        return b"" if self._connection is None else self._connection.send(h11.EndOfMessage()) or b""

    def _break_off(self) -> None:
        """The client sees a body that has not ended."""
        self.close()
        self._wire.abort()
