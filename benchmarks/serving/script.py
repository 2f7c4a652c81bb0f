"""What the scripted engine says, step by step: one token a stream, the number of the step.

No I/O and no clock. The streams of a measurement all begin in one step: requests are accepted as
they come, and wait for one another until so many are there or the others are late.
"""

from __future__ import annotations

from array import array

from benchmarks.serving.words import SIZE

from antiphon.engines.port import (
    NO_STOP_ID,
    NOT_REPORTED,
    Finish,
    Gauges,
    StepFrame,
)


class Script:
    """The open requests of the engine and the frame of each step."""

    def __init__(self) -> None:
        self._step = 0
        self._waiting: dict[int, int] = {}
        """key → tokens asked for, of those that have not begun."""
        self._running: dict[int, int] = {}
        """key → step of the last token."""
        self._ends: dict[int, list[int]] = {}
        """step → keys whose last token it brings."""
        self._news: list[tuple[int, Finish]] = []
        self._columns: tuple[array[int], ...] | None = None

    @property
    def waiting(self) -> int:
        """Requests that were taken and have not begun."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Requests that get a token in every step."""
        return len(self._running)

    @property
    def word(self) -> int:
        """The token of the next step."""
        return self._step % SIZE

    def submit(self, key: int, tokens: int) -> None:
        """Take a request for so many tokens; none at all is legal."""
        if tokens:
            self._waiting[key] = tokens
        self._news.append((key, Finish.NONE if tokens else Finish.LENGTH))

    def refuse(self, key: int) -> None:
        """The engine has stopped."""
        self._news.append((key, Finish.ERROR))

    def abort(self, key: int) -> None:
        """End a request; one that is not open is ignored."""
        last = self._running.pop(key, None)
        if last is not None:
            self._ends[last].remove(key)
            self._columns = None
        if last is not None or self._waiting.pop(key, None) is not None:
            self._news.append((key, Finish.ABORT))

    def abort_all(self) -> None:
        """End all that is open."""
        for key in [*self._waiting, *self._running]:
            self.abort(key)

    def begin(self) -> None:
        """Let all that waits run, from the next step on."""
        for key, tokens in self._waiting.items():
            last = self._step + tokens - 1
            self._running[key] = last
            self._ends.setdefault(last, []).append(key)
        self._waiting.clear()
        self._columns = None

    def news(self, now_ns: int) -> StepFrame | None:
        """What was taken, refused and aborted since the last call, without any token."""
        if not self._news:
            return None
        news, self._news = self._news, []
        frame = self._frame(array("I", [key for key, _ in news]), now_ns)
        frame.finish = array("B", [finish for _, finish in news])
        frame.cached = array(
            "i", [NOT_REPORTED if how in (Finish.ABORT, Finish.ERROR) else 0 for _, how in news]
        )
        return frame

    def step(self, now_ns: int) -> StepFrame:
        """A token for everyone that runs."""
        if self._columns is None:
            keys = array("I", self._running)
            ones = array("H", [1]) * len(keys)
            self._columns = (keys, ones, *self._frame_columns(len(keys)))
        keys, ones, stop_id, cached, finish = self._columns
        ending = self._ends.pop(self._step, ())
        if ending:
            last = set(ending)
            finish = array("B", [Finish.LENGTH if key in last else Finish.NONE for key in keys])
            for key in ending:
                del self._running[key]
            self._columns = None
        frame = StepFrame(
            step=self._step,
            t_ns=now_ns,
            key=keys,
            n_new=ones,
            token=array("I", [self.word]) * len(keys),
            finish=finish,
            stop_id=stop_id,
            cached=cached,
        )
        self._step += 1
        return frame

    def _frame(self, keys: array[int], now_ns: int) -> StepFrame:
        stop_id, cached, finish = self._frame_columns(len(keys))
        return StepFrame(
            step=self._step,
            t_ns=now_ns,
            key=keys,
            n_new=array("H", [0]) * len(keys),
            token=array("I"),
            finish=finish,
            stop_id=stop_id,
            cached=cached,
            gauges=Gauges(running=self.running, waiting=self.waiting),
        )

    @staticmethod
    def _frame_columns(rows: int) -> tuple[array[int], array[int], array[int]]:
        """(stop_id, cached, finish) of rows of which there is nothing to say."""
        return (
            array("i", [NO_STOP_ID]) * rows,
            array("i", [NOT_REPORTED]) * rows,
            array("B", [Finish.NONE]) * rows,
        )
