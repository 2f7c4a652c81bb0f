"""The same tokens in other steps.

A *bit* is the least that a cut can divide: a character, whose token's ids stand with the first one,
or a whole token where its text is not known alone (``bytes``) or its logprob goes with it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random

import attrs

from antiphon.engines.port import TokenSpelling
from antiphon.engines.recording import RecordedChoice
from antiphon.engines.recording_rows import StepRow

RANDOM_CUTS = 200


@attrs.frozen
class Bit:
    """``text`` is None in a recording of bytes."""

    ids: tuple[int, ...]
    text: str | None
    spelling: tuple[TokenSpelling, ...] | None = None


@attrs.frozen
class Cut:
    """``merged``: some step may have the text of several tokens without their borders."""

    name: str
    choice: RecordedChoice
    merged: bool


def bits(choice: RecordedChoice) -> list[Bit]:
    """The choice in its least parts."""
    return [bit for step in choice.steps for bit in _bits(step)]


def _bits(step: StepRow) -> Iterator[Bit]:
    if step.spelling is not None or step.text is None:
        for place, token in enumerate(step.ids):
            spelt = None if step.spelling is None else step.spelling[place : place + 1]
            text = None if spelt is None or step.text is None else spelt[0].text
            yield Bit((token,), text, spelt)
        return
    for place, char in enumerate(step.text):
        yield Bit(tuple(step.ids) if place == 0 else (), char)


def cuts(choice: RecordedChoice, seed: str) -> Iterator[Cut]:
    """As recorded, whole, by bits, in two at each place, and by chance in any number of steps.

    Every other one has its end in a step of its own.
    """
    yield Cut("tokens", choice, merged=False)
    parts = bits(choice)
    count = len(parts)
    if count < 2:
        return
    yield Cut("whole", _choice(choice, parts, ()), merged=True)
    yield Cut("single", _choice(choice, parts, range(1, count)), merged=False)
    for place in range(1, count):
        yield Cut(f"at {place}", _choice(choice, parts, (place,), place % 2), merged=True)
    draw = Random(seed)
    for number in range(RANDOM_CUTS):
        # A few long steps are another thing than many short ones, and cost less.
        most = count - 1 if number % 8 == 0 else min(12, count - 1)
        places = sorted(draw.sample(range(1, count), draw.randint(1, most)))
        named = f"random {number} of {len(places) + 1}"
        yield Cut(named, _choice(choice, parts, places, number % 2), merged=True)


def pieces(choice: RecordedChoice, size: int) -> Cut:
    """Steps of ``size`` characters, of a choice of text alone that may be too long for bits."""
    text = "".join([step.text or "" for step in choice.steps])
    steps = [
        StepRow(ms=ms, choice=0, ids=array("I"), text=text[at : at + size], spelling=None)
        for ms, at in enumerate(range(0, len(text), size))
    ]
    begins = 0
    for step in choice.steps:
        steps[begins // size].ids.extend(step.ids)
        begins += len(step.text or "")
    cut = attrs.evolve(choice, steps=steps, end_ms=len(steps))
    return Cut(f"{size} each", cut, merged=True)


def _choice(
    choice: RecordedChoice, parts: Sequence[Bit], places: Iterable[int], later: int = 0
) -> RecordedChoice:
    """``later``: milliseconds from the last step to the end."""
    steps = [
        _step(ms, parts[start:end])
        for ms, (start, end) in enumerate(pairwise([0, *places, len(parts)]))
    ]
    return attrs.evolve(choice, steps=steps, end_ms=len(steps) - 1 + later)


def _step(ms: int, parts: Sequence[Bit]) -> StepRow:
    spelled = [entry for bit in parts for entry in bit.spelling or ()]
    return StepRow(
        ms=ms,
        choice=0,
        ids=array("I", [token for bit in parts for token in bit.ids]),
        text=None if parts[0].text is None else "".join([bit.text or "" for bit in parts]),
        spelling=None if parts[0].spelling is None else tuple(spelled),
    )
