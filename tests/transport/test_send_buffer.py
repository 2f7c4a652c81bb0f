"""The send buffer: order, bound, and who waits for how long."""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.send_buffer import SendBuffer
from antiphon.transport.settings import STREAM_HIGH_WATER, STREAM_LOW_WATER


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 50)))
def test_what_goes_in_comes_out_in_order(pieces: list[bytes], sizes: list[int]) -> None:
    async def run() -> bytes:
        buffer = SendBuffer()
        for piece in pieces:
            await buffer.push(piece)
        out = [buffer.pop(size) for size in sizes]
        assert all(len(got) <= size for got, size in zip(out, sizes, strict=True))
        buffer.end()
        assert buffer.complete == (len(buffer) == 0)
        return b"".join(out) + buffer.pop(len(buffer))

    assert anyio.run(run) == b"".join(pieces)


async def test_a_full_buffer_holds_its_writer_until_the_low_water_mark() -> None:
    buffer = SendBuffer()
    passed = []

    async def write() -> None:
        await buffer.push(bytes(STREAM_HIGH_WATER))
        passed.append(len(buffer))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        buffer.pop(0)  # a shut window takes nothing and frees nobody
        buffer.pop(STREAM_HIGH_WATER - STREAM_LOW_WATER - 1)
        await anyio.wait_all_tasks_blocked()
        assert passed == []
        buffer.pop(1)
    assert passed == [STREAM_LOW_WATER]


async def test_closing_frees_everyone_and_takes_nothing_more() -> None:
    buffer = SendBuffer()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(buffer.push, bytes(2 * STREAM_HIGH_WATER))
        tasks.start_soon(buffer.finished)
        await anyio.wait_all_tasks_blocked()
        buffer.close()
    await buffer.push(bytes(2 * STREAM_HIGH_WATER))
    assert len(buffer) == 0


async def test_complete_is_ended_and_empty() -> None:
    buffer = SendBuffer()
    assert not buffer.complete
    await buffer.push(b"x")
    buffer.end()
    assert not buffer.complete
    buffer.pop(1)
    assert buffer.complete
