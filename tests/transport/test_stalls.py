"""Who takes nothing for too long, in the loop's own time: no wait here takes any."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.stalls import Stalls
from transport.pipe import timeless

SECONDS = 120.0


class Reader:
    """Takes a byte when a test says so; ``stalled`` are the times at which it was given up."""

    def __init__(self) -> None:
        self.taken = 0
        self.stalled: list[float] = []
        self.stalls = Stalls(SECONDS, lambda: self.taken, self._give_up)

    def _give_up(self) -> None:
        self.stalled.append(asyncio.get_running_loop().time())


@given(st.lists(st.floats(0.5, 2.5 * SECONDS), max_size=20))
def test_given_up_once_and_only_after_a_wait_of_that_length(pauses: list[float]) -> None:
    """It is also never later than twice that: a look at the end of each wait sees the whole of
    it."""
    reader = Reader()

    async def read() -> None:
        now, last, due = asyncio.get_running_loop().time, 0.0, False
        reader.stalls.begin()
        for pause in pauses:
            await asyncio.sleep(pause)
            if reader.stalled:
                break
            assert now() - last < 2 * SECONDS
            due = due or now() - last >= 2 * SECONDS
            reader.taken += 1
            reader.stalls.begin()  # again, as every pass does
            last = now()
        assert not due
        await asyncio.sleep(2 * SECONDS)
        (at,) = reader.stalled
        assert SECONDS <= round(at - last, 6) <= 2 * SECONDS
        await asyncio.sleep(10 * SECONDS)
        assert reader.stalled == [at]

    timeless(read())


@pytest.mark.parametrize("waits", [0.0, SECONDS / 2])
def test_nobody_is_given_up_who_owes_nothing(waits: float) -> None:
    reader = Reader()

    async def read() -> None:
        reader.stalls.begin()
        await asyncio.sleep(waits)
        reader.stalls.end()
        await asyncio.sleep(10 * SECONDS)
        assert reader.stalled == []
        reader.stalls.end()

    timeless(read())


def test_a_new_wait_is_a_wait_of_its_own() -> None:
    reader = Reader()

    async def read() -> None:
        for _ in range(5):
            reader.stalls.begin()
            await asyncio.sleep(SECONDS - 1)
            reader.stalls.end()
        assert reader.stalled == []
        reader.stalls.begin()
        await asyncio.sleep(SECONDS + 1)
        assert reader.stalled == [5 * (SECONDS - 1) + SECONDS]

    timeless(read())
