"""What is asked of every contestant, and the form of what it says."""

from __future__ import annotations

import random
from typing import Any, Literal, Protocol, TypeAlias

import attrs

Task: TypeAlias = Literal["single", "eight", "prefill", "turns"]
TASKS: tuple[Task, ...] = ("single", "eight", "prefill", "turns")
TITLES: dict[Task, str] = {
    "single": "one stream, decoding, tokens/s",
    "eight": "streams together, tokens/s in total",
    "prefill": "reading a prompt, tokens/s",
    "turns": "first token of a second turn: times sooner than of the first",
}
IDS = range(20, 512)
"""Token ids of prompts: what they say does not matter to anybody's speed."""


class NotMeasured(Exception):
    """A contestant cannot be measured at a task here; the message says why."""


@attrs.frozen
class Sizes:
    """Lengths in tokens, and the number of streams."""

    prompt: int = 16
    decode: int = 128
    prefill: int = 400
    streams: int = 8
    answer: int = 8
    """Of the first turn; the second adds ``prompt`` tokens to it."""


QUICK = Sizes(prompt=4, decode=6, prefill=40, streams=2, answer=2)


@attrs.frozen
class Timing:
    """One measurement: so many tokens in so many seconds, or two times until the first token."""

    value: float
    """Tokens a second; of ``turns`` the first turn's time over the second's."""
    detail: str = ""


class Contestant(Protocol):
    """What is measured. All methods may raise ``NotMeasured``."""

    def measure(self, task: Task, sizes: Sizes, number: int) -> Timing:
        """Do the task; ``number`` differs each time, and with it the prompts."""
        ...


def prompt(length: int, *parts: Any) -> list[int]:
    """Token ids that are the same for all who ask with the same parts."""
    return random.Random(repr(parts)).choices(IDS, k=length)


def rate(tokens: int, seconds: float) -> Timing:
    """Tokens a second."""
    return Timing(tokens / seconds, f"{tokens} tokens in {seconds * 1e3:.0f} ms")


def sooner(first_s: float, second_s: float) -> Timing:
    """Of two times until the first token."""
    return Timing(first_s / second_s, f"{first_s * 1e3:.0f} ms, then {second_s * 1e3:.1f} ms")
