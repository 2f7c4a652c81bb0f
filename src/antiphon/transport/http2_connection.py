"""h2's connection with this host's limits, and with faults of a stream that cost it alone.

h2 would end the connection for a body that is not as long as it said, and takes any number of
resets and of frames that carry nothing.
"""

from __future__ import annotations

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import Event, StreamReset
from h2.exceptions import InvalidBodyLengthError
from h2.frame_buffer import FrameBuffer
from h2.settings import SettingCodes
from h2.stream import H2Stream, StreamState
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PushPromiseFrame,
    RstStreamFrame,
)

from antiphon.transport.counted import Counted
from antiphon.transport.floods import Floods
from antiphon.transport.http2_rules import LenientSettings
from antiphon.transport.limits import Limits
from antiphon.transport.settings import HEADROOM

FIRST_WINDOW = 65_535
"""Of every connection, until it is made larger (RFC 9113, section 6.9.2)."""
LENGTH = 3
"""Bytes at the beginning of a frame that tell how long it is (section 4.1)."""
CONTINUATIONS = 32
"""Frames of one header block."""


class ServerH2(H2Connection):
    """The server's end. ``receive_data`` raises ``Flood`` for a client that is to leave."""

    MAX_CLOSED_STREAMS = 4096
    """How many ended streams are remembered: more than can be open, and far less than h2 does."""

    def __init__(self, limits: Limits, counted: Counted, floods: Floods) -> None:
        super().__init__(H2Configuration(client_side=False, header_encoding=None))
        self.local_settings = LenientSettings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: limits.h2_max_concurrent_streams,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.max_header_bytes,
                SettingCodes.INITIAL_WINDOW_SIZE: limits.h2_initial_window,
                SettingCodes.ENABLE_CONNECT_PROTOCOL: 0,
            },
        )
        self.decoder.max_header_list_size = HEADROOM * limits.max_header_bytes
        self._frames = Frames(HEADROOM * limits.max_header_bytes, floods)
        self.incoming_buffer = self._frames
        self._more_window = limits.h2_connection_window - FIRST_WINDOW
        self._counted = counted
        self._floods = floods

    def initiate_connection(self) -> None:
        """Send the settings, and open the window of the connection with them."""
        super().initiate_connection()
        if self._more_window > 0:
            self.increment_flow_control_window(self._more_window)

    @property
    def is_mid_frame(self) -> bool:
        """Whether a header block, or a frame that is no DATA, has begun and not ended."""
        return self._frames.is_mid_frame

    @property
    def unsaid(self) -> int:
        """Bytes of control frames, and of heads, that nobody has written yet."""
        return len(self._data_to_send)

    def _receive_frame(self, frame: Frame) -> list[Event]:
        self._floods.frame(frame)
        stream = self.streams.get(frame.stream_id)
        if isinstance(frame, RstStreamFrame):
            self._judge_reset(stream)
        said = stream._expected_content_length if stream is not None else None
        try:
            events: list[Event] = super()._receive_frame(frame)
        except InvalidBodyLengthError:
            return self._wrong_length(frame)
        if isinstance(frame, HeadersFrame) and self._falls_short(frame, said):
            return self._wrong_length(frame)
        if any(isinstance(each, StreamReset) and not each.remote_reset for each in events):
            self._floods.reset()
        return events

    def _judge_reset(self, stream: H2Stream | None) -> None:
        if stream is None or stream.closed:
            self._floods.control()
        elif stream.state_machine.state is not StreamState.HALF_CLOSED_LOCAL:
            self._floods.reset()

    def _falls_short(self, frame: HeadersFrame, said: int | None) -> bool:
        """Whether this head, or these trailers, end a body that was to be longer."""
        stream = self.streams.get(frame.stream_id)
        if stream is None or stream.closed or "END_STREAM" not in frame.flags:
            return False
        if said is None:
            said = stream._expected_content_length
        return said is not None and said != stream._actual_content_length

    def _wrong_length(self, frame: Frame) -> list[Event]:
        """A malformed request, and no fault of the others (section 8.1.1)."""
        self._counted.wrong_lengths += 1
        self._floods.reset()
        if isinstance(frame, DataFrame):
            self.acknowledge_received_data(frame.flow_controlled_length, frame.stream_id)
        self.reset_stream(frame.stream_id, ErrorCodes.PROTOCOL_ERROR)
        event = StreamReset(stream_id=frame.stream_id)
        event.error_code = ErrorCodes.PROTOCOL_ERROR
        event.remote_reset = False
        return [event]


class Frames(FrameBuffer):
    """Frames out of bytes. A header block in pieces is held up to ``most`` bytes, and a frame that
    is too long not at all, where h2 would wait for its end."""

    def __init__(self, most: int, floods: Floods) -> None:
        super().__init__(server=True)
        self._most = most
        self._floods = floods

    @property
    def is_mid_frame(self) -> bool:
        """See ``ServerH2``."""
        begun = self._data
        return bool(self._headers_buffer) or (bool(begun) and begun[3:4] != bytes([DataFrame.type]))

    def __next__(self) -> Frame:
        if len(self._data) >= LENGTH:
            self._validate_frame_length(int.from_bytes(self._data[:LENGTH], "big"))
        return super().__next__()

    def _update_header_buffer(
        self, f: Frame | None
    ) -> HeadersFrame | ContinuationFrame | PushPromiseFrame | Frame | None:
        pieces = self._headers_buffer
        if pieces and (
            len(pieces) > CONTINUATIONS or sum(len(each.data) for each in pieces) > self._most
        ):
            self._floods.continuation()
        return super()._update_header_buffer(f)
