"""How fast a recording is played: as recorded, flat out, or so many tokens every so often."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

import attrs

from antiphon.engines.recording_rows import MAX_STEP_TOKENS, StepRow

_FIXED = re.compile(r"(?:(\d{1,6})x)?(\d{1,6}(?:\.\d{1,6})?)ms", re.ASCII)


@attrs.frozen
class Pace:
    """The moments at which the steps of a playback are due.

    ``step_ns`` is None for the recorded times, 0 for flat out, else the length of a fixed step.
    Fixed steps lie on one grid for all requests, so that they move together, as in a real engine's
    step. ``tokens`` is the least a fixed step holds: recorded steps are joined until it is reached
    and never split, because text cannot be cut where nobody knows its token borders.
    """

    RECORDED: ClassVar[Pace]
    FULL: ClassVar[Pace]

    step_ns: int | None
    tokens: int = 1

    @classmethod
    def parse(cls, text: str) -> Pace:
        """``recorded``, ``full``, or a step: ``20ms`` (a token each) or ``4x20ms`` (four).

        Raises ``ValueError`` for anything else.
        """
        named = {"recorded": cls.RECORDED, "full": cls.FULL}.get(text)
        if named is not None:
            return named
        if match := _FIXED.fullmatch(text):
            tokens, step_ns = int(match[1] or 1), round(float(match[2]) * 1e6)
            if step_ns > 0 and 0 < tokens <= MAX_STEP_TOKENS:
                return cls(step_ns=step_ns, tokens=tokens)
        raise ValueError(
            f"a pace is 'recorded', 'full' or a step such as '20ms' or '4x20ms', not {text!r}"
        )

    def due_ns(self, start_ns: int, index: int, recorded_ms: float) -> int:
        """When step ``index`` is due, recorded at ``recorded_ms`` after the request's start."""
        if self.step_ns is None:
            return start_ns + round(recorded_ms * 1e6)
        if self.step_ns == 0:
            return start_ns
        return (start_ns // self.step_ns + 1 + index) * self.step_ns

    def join(self, steps: Iterable[StepRow]) -> Iterator[StepRow]:
        """The steps as this pace plays them."""
        if self.tokens == 1:
            yield from steps
            return
        joined: StepRow | None = None
        for step in steps:
            joined = step if joined is None else _join(joined, step)
            if len(joined.ids) >= self.tokens:
                yield joined
                joined = None
        if joined is not None:
            yield joined


Pace.RECORDED = Pace(step_ns=None)
Pace.FULL = Pace(step_ns=0)


def _join(first: StepRow, second: StepRow) -> StepRow:
    """Both as one step, at the time of the second. Either both are spelled or neither."""
    return StepRow(
        ms=second.ms,
        choice=first.choice,
        ids=first.ids + second.ids,
        text=None if first.text is None else first.text + (second.text or ""),
        spelling=None if first.spelling is None else first.spelling + (second.spelling or ()),
    )
