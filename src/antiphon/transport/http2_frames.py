"""Frames of HTTP/2 out of bytes, of no more than they may be, and faults of a stream alone."""

from __future__ import annotations

from h2.errors import ErrorCodes
from h2.frame_buffer import FrameBuffer
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PriorityFrame,
    PushPromiseFrame,
    WindowUpdateFrame,
)

from antiphon.transport.floods import Floods

LENGTH = 3
"""Bytes at the beginning of a frame that tell how long it is (RFC 9113, section 4.1)."""
HEADER = 9
"""Bytes of the header of a frame."""
PRIORITY_LENGTH = 5
OF_A_STREAM = frozenset({PriorityFrame.type, WindowUpdateFrame.type})
"""Frames with faults that cost their stream alone."""
CONTINUATIONS = 32
"""Frames of one header block."""


class Faulty(Frame):
    """Stands for a frame that is a fault of its stream (sections 6.3 and 6.9)."""

    error_code: ErrorCodes

    @property
    def is_update(self) -> bool:
        """Whether it is a WINDOW_UPDATE, which no stream that was never opened may get."""
        return self.error_code is ErrorCodes.PROTOCOL_ERROR

    @classmethod
    def of(cls, stream_id: int, error_code: ErrorCodes) -> Faulty:
        """A frame of ``stream_id`` that costs it ``error_code``."""
        faulty = cls(stream_id)
        faulty.error_code = error_code
        return faulty


class Frames(FrameBuffer):
    """Frames out of bytes. A header block in pieces is held up to ``most`` bytes, and a frame that
    is too long not at all, where h2 would wait for its end. Faults of a stream are ``Faulty``: the
    library that h2 reads them with would have it end the connection."""

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
        """h2 would wait for all of a frame that is too long before it says so."""
        if len(self._data) >= LENGTH:
            self._validate_frame_length(int.from_bytes(self._data[:LENGTH], "big"))
        return self._faulty() or super().__next__()

    def _faulty(self) -> Faulty | None:
        data = self._data
        if len(data) < HEADER or data[3] not in OF_A_STREAM or self._headers_buffer:
            return None
        length, stream_id = int.from_bytes(data[:LENGTH], "big"), _number(data[5:HEADER])
        if not stream_id or len(data) < HEADER + length:
            return None
        if data[3] == PriorityFrame.type and length != PRIORITY_LENGTH:
            fault = Faulty.of(stream_id, ErrorCodes.FRAME_SIZE_ERROR)
        elif (data[3], length) == (WindowUpdateFrame.type, 4) and not _number(data[HEADER:][:4]):
            fault = Faulty.of(stream_id, ErrorCodes.PROTOCOL_ERROR)
        else:
            return None
        del data[: HEADER + length]
        return fault

    def _update_header_buffer(
        self, f: Frame | None
    ) -> HeadersFrame | ContinuationFrame | PushPromiseFrame | Frame | None:
        """h2 bounds the number of pieces, and not what they hold."""
        pieces = self._headers_buffer
        if pieces and (
            len(pieces) > CONTINUATIONS or sum(len(each.data) for each in pieces) > self._most
        ):
            self._floods.continuation()
        return super()._update_header_buffer(f)


def _number(data: bytearray) -> int:
    """31 bits; the first one is reserved."""
    return int.from_bytes(data, "big") & 2**31 - 1
