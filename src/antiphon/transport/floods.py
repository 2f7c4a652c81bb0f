"""What costs an HTTP/2 client next to nothing and a server much more, and when it is too much.

A stream that is opened and reset at once has started a handler (CVE-2023-44487), and so has one
that the client makes the server reset (CVE-2025-8671). Frames that carry nothing have to be read,
and some to be answered. Each of the two has a bucket; who empties one loses the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from h2.exceptions import DenialOfServiceError, ProtocolError
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    PriorityFrame,
    RstStreamFrame,
    WindowUpdateFrame,
)

from antiphon.transport.bucket import Bucket
from antiphon.transport.counted import Counted
from antiphon.transport.limits import Limits

log = logging.getLogger("antiphon.transport")

BUSY = (HeadersFrame, RstStreamFrame, WindowUpdateFrame, PriorityFrame)
"""Frames that do not count here. HEADERS are bounded by the streams and a reset is judged by its
stream. A client may open a window for each event that it reads; to know of a priority costs nothing
where it is ignored."""


class Flood(DenialOfServiceError):
    """The client has done too much of something. h2 makes GOAWAY(ENHANCE_YOUR_CALM) of it."""


class Floods:
    """The buckets of one connection. What is too much is counted, and raised as a ``Flood``."""

    def __init__(self, limits: Limits, counted: Counted, clock: Callable[[], float]) -> None:
        self._resets = Bucket(limits.reset_burst, limits.reset_rate, clock())
        self._controls = Bucket(limits.control_burst, limits.control_rate, clock())
        self._counted = counted
        self._clock = clock

    def frame(self, frame: Frame) -> None:
        """A frame has come. Those that carry nothing count."""
        if isinstance(frame, DataFrame):
            if not frame.data and "END_STREAM" not in frame.flags:
                self.control()
        elif not isinstance(frame, BUSY):
            self.control()

    def control(self) -> None:
        """The client has done something that carries nothing."""
        if not self._controls.take(self._clock()):
            self._counted.control_floods += 1
            raise Flood("Too many frames that carry nothing.")

    def refused(self) -> None:
        """A stream above the limit is refused, and that has to be said."""
        self._counted.refused_streams += 1
        self.control()

    def reset(self) -> None:
        """A stream was reset by the client, or because of it, before its answer had ended."""
        if not self._resets.take(self._clock()):
            self._counted.resets_too_many += 1
            raise Flood("Too many streams reset.")

    def continuation(self) -> None:
        """A header block goes on and on."""
        self._counted.continuation_floods += 1
        raise Flood("A header block without an end.")

    def tell(self, fault: ProtocolError) -> None:
        """The connection ends for ``fault``: one line in the log, and counted."""
        if isinstance(fault, Flood):
            log.info("an HTTP/2 connection is ended: %s", fault)
        else:
            self._counted.protocol_errors += 1
            log.debug("an HTTP/2 connection is ended: %s", fault)
