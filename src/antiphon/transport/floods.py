"""What costs an HTTP/2 client next to nothing and a server much more, and when it is too much.

A stream that is opened and reset at once has started a handler (CVE-2023-44487), and so has one
that the client makes the server reset (CVE-2025-8671). Frames that carry nothing or very little
have to be read, and some to be answered. Windows can be opened by one byte at a time. Each of the
three has a bucket; who empties one loses the connection.
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
    SettingsFrame,
    WindowUpdateFrame,
)

from antiphon.transport.bucket import Bucket
from antiphon.transport.counted import Counted
from antiphon.transport.limits import Limits

log = logging.getLogger("antiphon.transport")

LIGHT = 0.1
"""The price of a frame that is read and needs no answer; one that is answered costs 1."""
SMALL = 256
"""Bytes of DATA below which a frame is hardly worth its reading, but for the last of a body."""
SETTING = 6
"""Bytes of one setting (RFC 9113, section 6.5.1)."""
SETTINGS = 8
"""How many cost nothing by themselves: one of each kind that is in use."""
UPDATED = 32
"""Bytes of DATA that a client may answer with one WINDOW_UPDATE, besides what anybody may. It
opens two windows for each event that it reads, and no event is shorter than twice that."""
OPENED = 2
"""How many it may send for each request."""


class Flood(DenialOfServiceError):
    """The client has done too much of something. h2 makes GOAWAY(ENHANCE_YOUR_CALM) of it."""


class Floods:
    """The buckets of one connection. What is too much is counted, and raised as a ``Flood``."""

    def __init__(self, limits: Limits, counted: Counted, clock: Callable[[], float]) -> None:
        self._resets = Bucket(limits.reset_burst, limits.reset_rate, clock())
        self._controls = Bucket(limits.control_burst, limits.control_rate, clock())
        self._updates = Bucket(limits.control_burst / LIGHT, limits.control_rate / LIGHT, clock())
        self._counted = counted
        self._clock = clock

    def frame(self, frame: Frame, *, gone: bool) -> None:
        """A frame has come; ``gone``: for a stream that is over. Nothing else is judged of resets
        and of windows here."""
        match frame:
            case DataFrame():
                ends = "END_STREAM" in frame.flags
                if not frame.data and (gone or not ends):
                    self.control()
                elif gone or (len(frame.data) < SMALL and not ends):
                    self.control(LIGHT)
            case HeadersFrame():
                self._updates.give(OPENED)
                if gone:
                    self.control()
            case SettingsFrame():
                self.control(max(1, frame.body_len // SETTING - SETTINGS))
            case PriorityFrame():
                self.control(LIGHT)
            case RstStreamFrame() | WindowUpdateFrame():
                pass
            case _:
                self.control()

    def control(self, price: float = 1) -> None:
        """The client has done something that carries nothing."""
        if not self._controls.take(self._clock(), price):
            self._flooded()

    def update(self, sent: int) -> None:
        """The client has opened a window. ``sent``: bytes of DATA that it got since it last did."""
        self._updates.give(sent / UPDATED)
        if not self._updates.take(self._clock()):
            self._flooded()

    def _flooded(self) -> None:
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
