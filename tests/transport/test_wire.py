"""The sending side of a socket: at once, never without a bound, and not for ever."""

from __future__ import annotations

import asyncio

import pytest

from antiphon.transport.limits import Limits
from antiphon.transport.wire import HIGH, LOW, Wire
from transport.pipe import Pipe, timeless

LIMITS = Limits(stall_timeout=120.0, connection_high=3 * HIGH)


class Socket:
    """A wire over a pipe whose client does not read."""

    def __init__(self) -> None:
        self.pipe = Pipe()
        self.pipe.reads = False
        self.stalled = 0
        self.drained = 0
        self.wire = Wire(self.pipe.writer, LIMITS, self._stalled)
        self.wire.on_drained = self._drained

    def is_full(self) -> bool:
        return self.wire.full

    def is_lost(self) -> bool:
        return self.pipe.lost

    def _stalled(self) -> None:
        self.stalled += 1

    def _drained(self) -> None:
        self.drained += 1


async def test_every_write_goes_out_as_it_is_and_nothing_is_none() -> None:
    it = Socket()
    for data in (b"one", b"", b"three"):
        it.wire.write(data)
    assert it.pipe.writes == [b"one", b"three"]


async def test_full_is_above_the_high_mark_until_the_low_one() -> None:
    it = Socket()
    it.wire.write(bytes(HIGH))
    assert not it.is_full()
    await it.wire.drained()  # nobody has to wait
    it.wire.write(b"x")
    assert it.is_full()
    waiting = [asyncio.ensure_future(it.wire.drained()) for _ in range(2)]
    await asyncio.sleep(0)
    it.pipe.read(HIGH - LOW)
    await asyncio.sleep(0)
    assert (it.is_full(), it.drained) == (True, 0)
    it.pipe.read(1)
    await asyncio.gather(*waiting)
    assert (it.is_full(), it.drained) == (False, 1)


async def test_a_waiter_that_is_cancelled_takes_nobody_with_it() -> None:
    it = Socket()
    it.wire.write(bytes(HIGH + 1))
    first, second = (asyncio.ensure_future(it.wire.drained()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    it.pipe.read_all()
    await second
    assert it.drained == 1


async def test_who_asks_on_and_on_and_never_reads_is_dropped() -> None:
    """Answers to control frames go to a full socket too: they are bounded all the same."""
    it = Socket()
    it.wire.write(bytes(HIGH + 1))
    while not it.is_lost():
        it.wire.write(b"a" * 17)
    assert it.pipe.most_unsent <= LIMITS.connection_high + 17
    assert it.stalled == 1
    before = len(it.pipe.writes)
    it.wire.write(b"late")  # to nobody, and no fault
    it.wire.abort()
    await it.wire.drained()
    assert (len(it.pipe.writes), it.stalled) == (before, 1)


def test_a_client_that_takes_not_a_byte_is_dropped_in_time() -> None:
    async def run() -> None:
        it = Socket()
        it.wire.write(bytes(HIGH))
        await asyncio.sleep(1000)
        assert not it.is_lost()  # what fits into the socket may stay there: nobody waits for it
        it.wire.write(b"x")
        waiting = asyncio.ensure_future(it.wire.drained())
        await asyncio.sleep(LIMITS.stall_timeout - 1)
        assert not it.is_lost()
        await asyncio.sleep(2)
        assert it.is_lost()
        assert it.stalled == 1
        await waiting

    timeless(run())


@pytest.mark.parametrize("size", [1, 100])
def test_a_client_that_takes_a_byte_now_and_then_is_not(size: int) -> None:
    async def run() -> None:
        it = Socket()
        it.wire.write(bytes(HIGH + 1))
        for _ in range(100):
            await asyncio.sleep(LIMITS.stall_timeout - 1)
            it.pipe.read(size)
        assert (it.is_lost(), it.is_full()) == (False, True)
        it.pipe.read_all()
        await asyncio.sleep(10 * LIMITS.stall_timeout)
        assert (it.is_lost(), it.stalled) == (False, 0)

    timeless(run())


async def test_the_end_of_a_connection_frees_who_waits_and_tells_nobody_to_go_on() -> None:
    it = Socket()
    it.wire.write(bytes(HIGH + 1))
    waiting = asyncio.ensure_future(it.wire.drained())
    await asyncio.sleep(0)
    it.pipe.abort()
    await waiting
    it.wire.close()
    it.wire.close()
    assert not it.is_full()
    assert it.stalled == 0
