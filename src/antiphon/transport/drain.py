"""The drain of a server, from the word that it ends to its end (pure: methods are told the time).

``SERVING`` until it is asked to end; then

* ``DRAINING``: answers go on and end by themselves; everybody is still heard, so that probes and
  new requests are told what happens;
* ``CUT``: the time of the answers is over, or somebody has asked again: the application gives each
  its last words, and those get ``FLUSH_S`` to be taken;
* ``CLOSING``: no answer is left that was begun before the drain. Nobody may connect any more, and
  each connection ends when its last stream has ended;
* ``DONE``: nothing is open, or what is open has had its time and is reset.

A phase is passed over when there is nothing to do in it, and none comes back.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf

FLUSH_S = 0.5
"""What clients get to take the last words of their answers."""
CLOSE_S = 0.25
"""What connections get to close at least, and at most once the time of the answers is over."""


class Phase(IntEnum):
    """How far a server has come; the order is that of time."""

    SERVING = 0
    DRAINING = 1
    CUT = 2
    CLOSING = 3
    DONE = 4


class Drain:
    """The phases of one server. All times are in seconds of one clock.

    ``grace_s`` is what answers get to end by themselves. Without ``heard`` nobody new is heard
    while they do: ``CLOSING`` comes first, and lasts as long.
    """

    def __init__(self, grace_s: float, *, heard: bool = True) -> None:
        self.phase = Phase.SERVING
        self.until = inf
        """When the present phase is over at the latest."""
        self._grace_s = grace_s
        self._heard = heard
        self._deadline = inf

    def ask(self, now: float) -> None:
        """End, or if it is about to end: at once."""
        if self.phase is Phase.SERVING:
            self._deadline = now + self._grace_s
            self._enter(Phase.DRAINING if self._heard else Phase.CLOSING, self._deadline)
            return
        self._deadline = min(self._deadline, now)
        if self.phase is Phase.DRAINING:
            self._enter(Phase.CUT, now + FLUSH_S)
        elif self.phase is Phase.CLOSING:
            self.until = min(self.until, now + CLOSE_S)

    def look(self, now: float, *, answers: int, connections: int) -> None:
        """Go on as far as it goes.

        ``answers`` are those that were begun before the drain, and are not yet with their clients.
        """
        if self.phase is Phase.DRAINING and answers and now >= self.until:
            self._enter(Phase.CUT, now + FLUSH_S)
        if self.phase in {Phase.DRAINING, Phase.CUT} and (not answers or now >= self.until):
            self._enter(Phase.CLOSING, max(self._deadline, now + CLOSE_S))
        if self.phase is Phase.CLOSING and (not connections or now >= self.until):
            self._enter(Phase.DONE, now)

    def _enter(self, phase: Phase, until: float) -> None:
        self.phase, self.until = phase, until
