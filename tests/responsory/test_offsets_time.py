"""How the time of ``text_offset`` grows: with the text, not with its square."""

from __future__ import annotations

import gc
import math
import time
from typing import TYPE_CHECKING, Any

import pytest

from responsory.projections.offsets import Offsets
from responsory.values import Logprob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def token(text: str) -> Logprob:
    return Logprob(text, -0.5, text.encode())


HIDDEN = token("<|x|>")


def steps(length: int, make: Callable[[int], tuple[str, Sequence[Logprob]]]) -> float:
    """Seconds of the processor that ``length`` deltas take, the best of three."""
    best = math.inf
    for _ in range(3):
        offsets, parts = Offsets(), [make(at) for at in range(length)]
        gc.disable()  # what it costs to look through all entries is not the question
        start = time.process_time()
        for text, entries in parts:
            offsets.take(text, entries)
        best = min(best, time.process_time() - start)
        gc.enable()
    return best


@pytest.mark.parametrize(
    "make",
    [
        lambda at: ("word ", (token("word "),)),
        lambda at: ("word ", ()),
        lambda at: ("aaaa", (token("aaaa"),) if at % 7 == 0 else ()),
        lambda at: ("aaaa", (HIDDEN, token("aa"))),
    ],
    ids=["listed", "unlisted", "some", "hidden"],
)
def test_the_time_grows_with_the_text(make: Any) -> None:
    """A delta costs the same however much came before it: fifty times as many would take 2,500
    times as long if it did not."""
    steps(500, make)
    assert steps(50_000, make) < 300 * steps(1_000, make)


@pytest.mark.parametrize("hidden", [False, True])
def test_one_long_delta_takes_time_that_grows_with_it(hidden: bool) -> None:
    def delta(length: int) -> float:
        entries = [HIDDEN if hidden else token("aa")] * length
        return steps(1, lambda _: ("aa" * length, entries))

    delta(500)
    assert delta(50_000) < 300 * delta(1_000)
