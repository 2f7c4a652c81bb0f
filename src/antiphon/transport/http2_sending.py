"""The send pass of an HTTP/2 connection: which bytes are written next.

Control frames come first, then DATA: as much of every ready stream as its window, the connection's
window and the largest frame allow, in the order in which they became ready. A pass has a limit, and
who did not get a turn comes first in the next. There are no priorities (RFC 9113, section 5.3.2).

DATA frames of a stream that goes on are framed here: nine bytes and the data (section 4.1), and
both windows less (section 6.9). h2 does the same more slowly. All else is left to it:
heads, ends, trailers, resets, and all of its states, which such a frame does not change.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable

from h2.connection import H2Connection
from h2.exceptions import ProtocolError

from antiphon.transport.send_buffer import Chunk, Load, SendBuffer
from antiphon.transport.settings import HostConfig
from antiphon.transport.wire import Wire

log = logging.getLogger("antiphon.transport")

PASS = 256 * 1024
"""Bytes of DATA in one pass."""
MAX_FRAME = 64 * 1024
"""Bytes of one DATA frame, however much the client would take."""
_HEADER = struct.Struct(">HBBBL")
"""Length (24 bits, the lowest eight apart), type (0: DATA), flags (none), stream."""


class Outgoing:
    """What one connection has to send: control frames, and the streams that are open."""

    def __init__(
        self,
        connection: H2Connection,
        wire: Wire,
        config: HostConfig,
        failed: Callable[[], None],
    ) -> None:
        """``failed`` is called when sending fails: the connection cannot go on."""
        self._h2 = connection
        self._wire = wire
        wire.on_drained = self.mark
        self._limits = config.limits
        self._flushes = config.flush
        self._direct = config.h2_direct_framing
        self._failed = failed
        self._load = Load(config.limits, config.counted)
        self._abandoned = False
        self._gone = SendBuffer(config.limits, self._load, failed)
        self._gone.close()
        self._ready: dict[int, None] = {}
        """Streams to look at in the next pass, in order."""
        self.buffers: dict[int, SendBuffer] = {}

    @property
    def owes(self) -> bool:
        """Whether something is queued until the client takes it."""
        return self._load.queued > 0

    def open(self, stream_id: int, stalled: Callable[[], None]) -> SendBuffer:
        """The buffer of a new stream; ``stalled`` is called when the client takes nothing of it."""
        buffer = self.buffers[stream_id] = SendBuffer(self._limits, self._load, stalled)
        return buffer

    def buffer_of(self, stream_id: int) -> SendBuffer:
        """The stream's buffer, or one that takes the rest of an answer whose stream is gone."""
        return self.buffers.get(stream_id, self._gone)

    def mark(self) -> None:
        """Let the connection be written to soon."""
        if not self._wire.full:
            self._flushes.mark(self)

    def touch(self, stream_id: int) -> None:
        """The stream has something to send."""
        self._ready[stream_id] = None
        if not self._wire.full:
            self._flushes.mark(self)

    def window_opened(self, stream_id: int | None) -> None:
        """The client takes more on this stream; None or 0: on all of them."""
        self._ready |= {stream_id: None} if stream_id else dict.fromkeys(self.buffers)
        self.mark()

    def forget(self, stream_id: int) -> None:
        """The stream is over."""
        if (buffer := self.buffers.pop(stream_id, None)) is not None:
            buffer.close()

    def abandon(self) -> None:
        """No data is sent any more."""
        self._abandoned = True
        for buffer in list(self.buffers.values()):
            buffer.close()

    def flush(self) -> None:
        """Write what is ready; while the socket is full, only what h2 itself has to say."""
        if self._abandoned or self._wire.full:
            self._wire.write(self._h2.data_to_send())
            return
        try:
            out, done = self.frames()
        except Exception:
            log.exception("sending on an HTTP/2 connection failed")
            self._failed()
            return
        self._wire.write(b"".join(out))
        for buffer in done:
            buffer.close()
        if self._ready:
            self.mark()

    def frames(self) -> tuple[list[Chunk], list[SendBuffer]]:
        """The next pass: what to write, and the buffers that are done once it is written."""
        out: list[Chunk] = [control] if (control := self._h2.data_to_send()) else []
        done: list[SendBuffer] = []
        ready, self._ready = self._ready, {}
        buffers, room, later = self.buffers, PASS, []
        for stream_id in ready:
            buffer = buffers.get(stream_id)
            if buffer is None or buffer.closed:
                continue
            if room <= 0:
                later.append(stream_id)
                continue
            try:
                room -= self._send(stream_id, buffer, out)
                if not buffer.sent_end:
                    continue
            except ProtocolError:
                pass  # The client has reset the stream; the event that says so is on its way.
            done.append(buffer)
        if later:
            self._ready = dict.fromkeys(later) | self._ready
        return out, done

    def _send(self, stream_id: int, buffer: SendBuffer, out: list[Chunk]) -> int:
        """The stream's next frame, appended to ``out``; how many bytes it holds."""
        connection, size = self._h2, buffer.size
        if not size:
            self._end(stream_id, buffer, out)
            return 0
        stream = connection.streams.get(stream_id)
        if stream is None or stream.closed:
            raise ProtocolError
        # A window can be negative: the client may have made its first one smaller.
        window = min(stream.outbound_flow_control_window, connection.outbound_flow_control_window)
        if window <= 0:
            buffer.blocked()
            return 0
        most = min(size, window, connection.max_outbound_frame_size, MAX_FRAME)
        before = buffer.taken
        chunks = buffer.take(most)
        size = buffer.taken - before
        if self._direct and not buffer.complete:
            stream.outbound_flow_control_window -= size
            connection.outbound_flow_control_window -= size
            out.append(_HEADER.pack(size >> 8, size & 255, 0, 0, stream_id))
            out += chunks
        else:
            ends = buffer.complete and buffer.trailers is None
            connection.send_data(stream_id, b"".join(chunks), end_stream=ends)
            out.append(connection.data_to_send())
            buffer.sent_end = ends
        if buffer.size:
            self._ready[stream_id] = None
        else:
            buffer.moved()
            if buffer.complete and not buffer.sent_end:
                self._end(stream_id, buffer, out)
        return size

    def _end(self, stream_id: int, buffer: SendBuffer, out: list[Chunk]) -> None:
        """The end of a stream of which all data has been sent, if it ends."""
        if not buffer.complete:
            return
        if buffer.trailers is None:
            self._h2.end_stream(stream_id)
        else:
            self._h2.send_headers(stream_id, buffer.trailers, end_stream=True)
        out.append(self._h2.data_to_send())
        buffer.sent_end = True
