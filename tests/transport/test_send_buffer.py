"""The send buffer: order, bounds, and who waits for how long."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.counted import Counted
from antiphon.transport.limits import Limits
from antiphon.transport.send_buffer import Load, SendBuffer

LIMITS = Limits(stream_high=100, stream_low=30, connection_high=250)


def buffer(load: Load | None = None) -> SendBuffer:
    return SendBuffer(LIMITS, load or Load(LIMITS, Counted()), lambda: None)


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(1, 50)), st.booleans())
def test_what_goes_in_comes_out_in_order(
    pieces: list[bytes], sizes: list[int], offered: bool
) -> None:
    limits = Limits(stream_high=10_000)
    load = Load(limits, Counted())

    async def run() -> bytes:
        queue = SendBuffer(limits, load, lambda: None)
        for piece in pieces:
            if offered:
                assert queue.offer(piece)
            else:
                await queue.push(piece)
        out = [b"".join(queue.take(size)) for size in sizes if queue.size]
        assert all(0 < len(got) <= size for got, size in zip(out, sizes, strict=False))
        assert load.queued == queue.size == sum(map(len, pieces)) - queue.taken
        queue.end()
        assert queue.complete == (queue.size == 0)
        return b"".join(out) + b"".join(queue.take(queue.size + 1))

    assert anyio.run(run) == b"".join(pieces)
    assert load.queued == 0


async def test_a_full_buffer_holds_its_writer_until_the_low_water_mark() -> None:
    queue = buffer()
    passed = []

    async def write() -> None:
        await queue.push(bytes(100))
        passed.append(queue.size)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        queue.take(100 - 30 - 1)
        await anyio.wait_all_tasks_blocked()
        assert passed == []
        queue.take(1)
    assert passed == [30]


async def test_an_offer_above_the_high_water_mark_is_refused_until_the_low_one() -> None:
    queue = buffer()
    ready: list[int] = []
    queue.on_ready(lambda: ready.append(queue.size))
    assert queue.offer(bytes(60))
    assert not queue.offer(bytes(41))
    assert (queue.detached, queue.size) == (True, 60)  # nothing of it is queued
    queue.take(29)
    await anyio.lowlevel.checkpoint()
    assert ready == []
    queue.take(1)
    assert ready == []  # what was taken is written first
    await anyio.lowlevel.checkpoint()
    assert ready == [30]
    queue.take(30)
    await anyio.lowlevel.checkpoint()
    assert ready == [30]  # it is told once
    assert queue._load.counted.detached == 1


async def test_a_frame_longer_than_the_mark_goes_into_an_empty_queue() -> None:
    queue = buffer()
    assert queue.offer(bytes(101))
    assert not queue.offer(b"x")
    assert b"".join(queue.take(200)) == bytes(101)


async def test_on_a_full_connection_a_stream_queues_what_it_can_send_at_once() -> None:
    """Others that are not read fill it; one that is read goes on beside them."""
    load = Load(LIMITS, Counted())
    others = [buffer(load) for _ in range(3)]
    for other in others:
        assert other.offer(bytes(90))
    live = buffer(load)
    told: list[None] = []
    live.on_ready(lambda: told.append(None))
    for _ in range(10):
        assert live.offer(b"x")
        assert not live.offer(b"y")  # it holds something already
        live.take(1)
        await anyio.lowlevel.checkpoint()
    assert len(told) == 10
    assert not others[0].offer(b"x")
    others[1].close()  # what is dropped is no load
    assert live.offer(b"x")
    assert live.offer(b"y")


async def test_on_a_full_connection_a_writer_waits() -> None:
    load = Load(LIMITS, Counted())
    for _ in range(3):
        assert buffer(load).offer(bytes(90))
    queue = buffer(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.push, b"x")
        await anyio.wait_all_tasks_blocked()
        queue.take(1)


async def test_closing_frees_everyone_and_takes_nothing_more() -> None:
    queue = buffer()
    closed: list[None] = []
    queue.on_closed(lambda: closed.append(None))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.push, bytes(200))
        tasks.start_soon(queue.finished)
        await anyio.wait_all_tasks_blocked()
        queue.close()
        queue.close()
    await queue.push(bytes(200))
    assert queue.offer(bytes(200))  # dropped: nobody is to wait for it
    assert queue.size == 0
    await queue.finished()
    assert closed == [None]
    queue.on_closed(lambda: closed.append(None))
    assert closed == [None, None]  # whoever comes late hears of it at once


async def test_the_end_of_a_body_is_no_loss() -> None:
    queue = buffer()
    closed: list[None] = []
    queue.on_closed(lambda: closed.append(None))
    queue.end()
    queue.sent_end = True
    queue.close()
    assert closed == []


async def test_complete_is_ended_and_empty() -> None:
    queue = buffer()
    assert not queue.complete
    await queue.push(b"x")
    queue.end()
    assert not queue.complete
    queue.take(1)
    assert queue.complete


@pytest.mark.parametrize("taken", [0, 10])
async def test_a_reader_is_stalled_when_it_takes_nothing_of_what_waits(taken: int) -> None:
    stalled = anyio.Event()
    limits = Limits(stall_timeout=0.01)
    queue = SendBuffer(limits, Load(limits, Counted()), stalled.set)
    assert queue.offer(bytes(1000))
    queue.blocked()
    if taken:
        queue.take(taken)
        queue.blocked()
    with anyio.fail_after(5):
        await stalled.wait()
    queue.moved()
