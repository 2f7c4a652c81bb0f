"""h2's connection with this host's limits, and with faults of a stream that cost it alone.

h2 would end the connection for a body that is not as long as it said, and takes any number of
resets and of frames that carry nothing.
"""

from __future__ import annotations

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event, StreamReset
from h2.exceptions import InvalidBodyLengthError, NoSuchStreamError
from h2.settings import SettingCodes
from h2.stream import H2Stream, StreamState
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from antiphon.transport.counted import Counted
from antiphon.transport.floods import Floods
from antiphon.transport.http2_frames import Faulty, Frames
from antiphon.transport.http2_rules import LenientSettings
from antiphon.transport.limits import Limits
from antiphon.transport.settings import HEADROOM

FIRST_WINDOW = 65_535
"""Of every connection, until it is made larger (RFC 9113, section 6.9.2)."""
KNOWN = frozenset(map(int, SettingCodes))
"""Settings that h2 has a use for; others are ignored (section 6.5.2)."""


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
        self._granted = FIRST_WINDOW
        """All that the client has opened the window of the connection by."""
        self._sent = 0
        """Bytes of DATA that it had been sent when it last opened one."""

    def initiate_connection(self) -> None:
        """Send the settings, and open the window of the connection with them."""
        super().initiate_connection()
        if self._more_window > 0:
            self.increment_flow_control_window(self._more_window)

    def give_to_all(self, size: int) -> None:
        """Open the window of the connection again, by what has come on any stream. h2 opens that of
        the stream with it, and then the client might send more of what has to be kept."""
        if more := self._inbound_flow_control_window_manager.process_bytes(size):
            self._prepare_for_sending([WindowUpdateFrame(0, window_increment=more)])

    def give_to_one(self, size: int, stream_id: int) -> None:
        """Open the window of a stream again, if it is open."""
        stream = self.streams.get(stream_id)
        if stream is not None and stream.open:
            self._prepare_for_sending(stream.acknowledge_received_data(size))

    @property
    def goes_on(self) -> bool:
        """Whether no GOAWAY has ended it, of either side."""
        return self.state_machine.state is not ConnectionState.CLOSED

    @property
    def is_mid_frame(self) -> bool:
        """Whether a header block, or a frame that is no DATA, has begun and not ended."""
        return self._frames.is_mid_frame

    @property
    def unsaid(self) -> int:
        """Bytes of control frames, and of heads, that nobody has written yet."""
        return len(self._data_to_send)

    def _receive_frame(self, frame: Frame) -> list[Event]:
        """h2 bounds no number of frames, and ends the connection for faults of one stream: here
        each frame has its price, and such a fault resets its stream."""
        if isinstance(frame, Faulty):
            if frame.is_update and frame.stream_id > self.highest_inbound_stream_id:
                raise NoSuchStreamError(frame.stream_id)
            return self._fault(frame.stream_id, frame.error_code)
        stream = self.streams.get(frame.stream_id)
        gone = (
            frame.stream_id <= self.highest_inbound_stream_id if stream is None else stream.closed
        )
        self._floods.frame(frame, gone=gone and frame.stream_id > 0)
        if isinstance(frame, RstStreamFrame):
            self._judge_reset(stream)
        elif isinstance(frame, WindowUpdateFrame):
            self._judge_update(frame)
        said = stream._expected_content_length if stream is not None else None
        on_itself = isinstance(frame, HeadersFrame) and _is_on_itself(frame)
        if isinstance(frame, HeadersFrame):
            frame.flags.discard("PRIORITY")
        try:
            events: list[Event] = super()._receive_frame(frame)
        except InvalidBodyLengthError:
            return self._wrong_length(frame)
        if isinstance(frame, HeadersFrame) and self._falls_short(frame, said):
            return self._wrong_length(frame)
        if on_itself:
            return self._fault(frame.stream_id, ErrorCodes.PROTOCOL_ERROR)
        if any(isinstance(each, StreamReset) and not each.remote_reset for each in events):
            self._floods.reset()
        return events

    def _receive_settings_frame(self, frame: SettingsFrame) -> tuple[list[Frame], list[Event]]:
        """h2 would keep each setting that it does not know, for as long as the connection lives."""
        frame.settings = {key: frame.settings[key] for key in KNOWN & frame.settings.keys()}
        result: tuple[list[Frame], list[Event]] = super()._receive_settings_frame(frame)
        return result

    def _receive_priority_frame(
        self, frame: HeadersFrame | PriorityFrame
    ) -> tuple[list[Frame], list[Event]]:
        """h2 would end the connection for a stream that is to wait for itself; all else that such
        a frame may say is ignored."""
        if _is_on_itself(frame):
            return [], self._fault(frame.stream_id, ErrorCodes.PROTOCOL_ERROR)
        return [], []

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        """To h2 a GOAWAY is the end of all. A client that says it without an error opens no more
        streams, and still reads those that it has (section 6.8)."""
        if frame.error_code or not self.goes_on:
            result: tuple[list[Frame], list[Event]] = super()._receive_goaway_frame(frame)
            return result
        event = ConnectionTerminated()
        event.error_code = ErrorCodes.NO_ERROR
        event.last_stream_id = frame.last_stream_id
        return [], [event]

    def _judge_update(self, frame: WindowUpdateFrame) -> None:
        sent = self._granted - self.outbound_flow_control_window
        self._floods.update(sent - self._sent)
        self._sent = sent
        if not frame.stream_id:
            self._granted += frame.window_increment

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
        return self._end(frame.stream_id, ErrorCodes.PROTOCOL_ERROR)

    def _fault(self, stream_id: int, error_code: ErrorCodes) -> list[Event]:
        """A fault of one stream, if there is such a stream."""
        stream = self.streams.get(stream_id)
        if stream is None or stream.closed:
            self._floods.control()
            return []
        self._floods.reset()
        return self._end(stream_id, error_code)

    def _end(self, stream_id: int, error_code: ErrorCodes) -> list[Event]:
        self.reset_stream(stream_id, error_code)
        event = StreamReset(stream_id=stream_id)
        event.error_code = error_code
        event.remote_reset = False
        return [event]


def _is_on_itself(frame: HeadersFrame | PriorityFrame) -> bool:
    prioritized = isinstance(frame, PriorityFrame) or "PRIORITY" in frame.flags
    return prioritized and frame.depends_on == frame.stream_id
