"""Clients that vanish: a machine that loses its power, or its network, says nothing any more.

An HTTP/2 client with open streams that has been silent is asked (PING) whether it is there. While
something waits for it to read that says nothing: it may be slow, and a limit of its own watches
over that. Who speaks HTTP/1.1 cannot be asked; there the system is told to do what it can.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable
from contextlib import suppress

from antiphon.transport.limits import Limits

MOST_S = 2**15 - 1
"""Of ``TCP_KEEPIDLE`` and ``TCP_KEEPINTVL`` on Linux, which takes no longer time at all, …"""
MOST_MS = 2**31 - 1
"""… and of ``TCP_USER_TIMEOUT``."""
PROBES = 2
"""Of the system, before it gives up on a connection on which nothing else happens."""


class PeerWatch:
    """Watches over one client, while it has open streams.

    ``heard`` is when it was last heard, by the loop's clock. ``owes`` is whether something waits
    for it to read. ``ask`` sends the question, and ``lost`` is called where no answer came.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        heard: Callable[[], float],
        owes: Callable[[], bool],
        ask: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._silence = limits.peer_silence
        self._answer = limits.peer_answer
        self._heard = heard
        self._owes = owes
        self._ask = ask
        self._lost = lost
        self._asked: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, on: bool) -> None:
        """Whether there are open streams; idempotent."""
        if on and self._timer is None:
            self._asked = None
            self._look_at(asyncio.get_running_loop().time() + self._silence)
        elif not on and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_at(self, when: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        now, heard = asyncio.get_running_loop().time(), self._heard()
        # An answer may come in the tick of the question: uvloop's clock counts milliseconds.
        if self._asked is not None and heard < self._asked:
            self._timer = None
            self._lost()
            return
        self._asked = None
        if now < heard + self._silence:
            self._look_at(heard + self._silence)
        elif self._owes():
            self._look_at(now + self._silence)
        else:
            self._asked = now
            self._ask()
            self._look_at(now + self._answer)


def watched_by_the_system(sock: socket.socket, limits: Limits) -> None:
    """Have the system probe a silent TCP connection and end one whose peer acknowledges nothing.

    It does that, too, to a peer whose window stays shut, and so not before a reader counts as
    stalled, which may take twice its time (see ``stalls``). Options that a system lacks are left
    out.
    """
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    silence = math.ceil(min(limits.peer_silence, MOST_S))
    options = {
        "TCP_KEEPIDLE": silence,
        "TCP_KEEPALIVE": silence,  # the same, on macOS
        "TCP_KEEPINTVL": math.ceil(min(limits.peer_answer / PROBES, MOST_S)),
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": math.ceil(min(2 * limits.stall_timeout * 1000, MOST_MS)),
    }
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        with suppress(OSError):
            if (option := getattr(socket, name, None)) is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, max(1, value))
