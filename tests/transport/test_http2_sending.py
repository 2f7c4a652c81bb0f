"""The send pass of HTTP/2: our own framing is h2's, byte by byte; and what is in a pass."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
import pytest
from h2.events import StreamEnded, StreamReset, TrailersReceived
from hyperframe.frame import Frame
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.transport.http2_sending import MAX_FRAME, PASS
from antiphon.transport.limits import Limits
from antiphon.transport.settings import HostConfig
from transport.ends import GREAT, KIB, LIMITS, WIDE, ByHand, Ends, data_frames, frames_of, opened
from transport.hosting import H2Client, new_request_id, serving_on
from transport.pipe import timeless
from transport.streaming import Streaming

STREAMS = 4

Step: TypeAlias = Callable[[Ends], None]
sizes = st.one_of(
    st.integers(1, 300),
    st.sampled_from([16_383, 16_384, 16_385, 32_769, 65_535, 65_536, 65_537]),
    st.integers(1, 100_000),
)
windows = st.one_of(st.integers(0, 300), st.sampled_from([16_384, 65_535]), st.integers(0, WIDE))
number = st.integers(0, STREAMS - 1)


def stream(index: int) -> int:
    """The id of the client's stream of this number."""
    return 2 * index + 1


def _offer(index: int, size: int, letter: int) -> Step:
    return lambda ends: ends.offer(stream(index), bytes([letter]) * size)


def _end(index: int, trailers: bool) -> Step:
    return lambda ends: ends.end(stream(index), trailers)


def _reset(index: int) -> Step:
    return lambda ends: ends.reset(stream(index))


def _leave(index: int, known: bool) -> Step:
    return lambda ends: ends.leave(stream(index), known=known)


def _more(index: int, size: int) -> Step:
    """Number 0 is the connection."""
    return lambda ends: ends.more(stream(index - 1) if index else 0, size)


def _change(window: int, frame: int) -> Step:
    return lambda ends: ends.change(window, frame)


def _read(reads: bool) -> Step:
    def step(ends: Ends) -> None:
        ends.pipe.reads = reads
        if reads:
            ends.pipe.read_all()

    return step


def _deliver(ends: Ends) -> None:
    ends.deliver()


steps = st.one_of(
    st.builds(_offer, number, sizes, st.integers(97, 122)),
    st.builds(_offer, number, sizes, st.integers(97, 122)),
    st.builds(_end, number, st.booleans()),
    st.builds(_reset, number),
    st.builds(_leave, number, st.booleans()),
    st.builds(_more, st.integers(0, STREAMS), st.one_of(st.integers(1, 300), sizes)),
    st.builds(_change, windows, st.integers(16_384, 2**24 - 1)),
    st.builds(_read, st.booleans()),
    st.just(Ends.flush),
    st.just(Ends.flush),
    st.just(_deliver),
)


@settings(max_examples=300)
@given(first=windows, schedule=st.lists(steps, max_size=40))
def test_our_framing_and_the_one_of_h2_are_the_same(first: int, schedule: list[Step]) -> None:
    """Whatever happens: the same bytes in the same writes, the same windows, and a client that is
    given what was offered, in order, and one end. h2's client is the judge of every window."""

    async def run() -> None:
        ours, theirs = Ends(True, window=first), Ends(False, window=first)
        for ends in (ours, theirs):
            for _ in range(STREAMS):
                ends.open()
        for step in schedule:
            for ends in (ours, theirs):
                step(ends)
                await anyio.lowlevel.checkpoint()  # a socket that has been read is told so
                await anyio.lowlevel.checkpoint()
            assert ours.pipe.writes == theirs.pipe.writes
            assert ours.windows == theirs.windows
        for ends in (ours, theirs):
            for stream_id in list(ends.outgoing.buffers):
                ends.end(stream_id)
            ends.pipe.read_all()
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            ends.settle()
            assert ends.failures == 0
            for stream_id, offered in ends.offered.items():
                got, ended = ends.body(stream_id), len(ends.of(StreamEnded, stream_id))
                if stream_id in ends.over:
                    assert offered.startswith(got)
                    assert ended <= 1
                else:
                    assert (got, ended) == (offered, 1)
        assert ours.pipe.writes == theirs.pipe.writes
        assert ours.windows == theirs.windows
        assert list(map(repr, ours.events)) == list(map(repr, theirs.events))

    anyio.run(run)


async def test_one_write_for_all_streams_of_a_step() -> None:
    flushes = ByHand()
    connections = [opened(100, flushes=flushes) for _ in range(3)]
    for ends in connections:
        for stream_id in ends.offered:
            ends.offer(stream_id, b"data: %d\n\n" % stream_id)
            ends.offer(stream_id, b"data: more\n\n")
    flushes.run()
    for ends in connections:
        (write,) = ends.pipe.writes
        frames = data_frames(write)
        assert [each for each, _, _ in frames] == list(ends.offered)
        assert {each: data for each, data, _ in frames} == ends.offered
    flushes.run()
    assert all(len(ends.pipe.writes) == 1 for ends in connections)


async def test_the_end_rides_on_the_last_data() -> None:
    ends = opened(2)
    for stream_id in ends.offered:
        ends.offer(stream_id, b"data: 1\n\n")
        ends.end(stream_id)
    ends.flush()
    assert (data_frames(ends.pipe.written)) == [
        (1, b"data: 1\n\n", True),
        (3, b"data: 1\n\n", True),
    ]


async def test_an_end_without_data_is_a_frame_of_its_own() -> None:
    ends = opened(1)
    ends.end(1)
    ends.flush()
    assert (data_frames(ends.pipe.written)) == [(1, b"", True)]


@pytest.mark.parametrize("frame", [16_384, MAX_FRAME, 2**24 - 1])
async def test_a_pass_has_a_limit_and_goes_round(frame: int) -> None:
    """A greedy stream gets one frame of each pass, and no pass is much longer than its limit."""
    ends, turns = opened(40, frame=frame), 0
    greedy, *modest = ends.offered
    ends.offer(greedy, bytes(400 * KIB))
    for stream_id in modest:
        ends.offer(stream_id, bytes(MAX_FRAME))
    most = min(frame, MAX_FRAME)
    seen: list[int] = []
    while ends.flushes.marked:
        before = len(ends.pipe.writes)
        ends.flush()
        (write,) = ends.pipe.writes[before:]
        frames = data_frames(write)
        streams = [each for each, _, _ in frames]
        assert len(set(streams)) == len(streams)
        assert all(len(data) <= most for _, data, _ in frames)
        assert sum(len(data) for _, data, _ in frames) < PASS + most
        seen += streams
        turns += 1
    # Nobody had a second turn before all had a first.
    assert set(seen[:40]) == set(ends.offered)
    assert turns > 1
    ends.deliver()
    assert {each: ends.body(each) for each in ends.offered} == ends.offered


async def test_control_frames_come_before_data() -> None:
    ends = opened(2)
    ends.offer(1, b"data")
    ends.server.ping(b"12345678")
    ends.server.reset_stream(3)
    ends.flush()
    (write,) = ends.pipe.writes
    heads = [Frame.parse_frame_header(memoryview(each[:9]))[0] for each in frames_of(write)]
    kinds = [type(each).__name__ for each in heads]
    assert kinds == ["PingFrame", "RstStreamFrame", "DataFrame"]


async def test_a_full_socket_gets_control_frames_alone() -> None:
    flushes = ByHand()
    ends = opened(1, flushes=flushes)
    ends.pipe.reads = False
    ends.offer(1, bytes(100 * KIB))
    while flushes.marked and not ends.outgoing._wire.full:
        ends.flush()
    before = len(ends.pipe.writes)
    ends.offer(1, b"data")
    assert flushes.idle
    ends.server.ping(b"12345678")
    ends.flushes.mark(ends.outgoing)
    ends.flush()
    (write,) = ends.pipe.writes[before:]
    assert (data_frames(write)) == []
    ends.pipe.read_all()
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert flushes.marked  # by itself
    ends.settle()
    assert ends.body(1) == bytes(100 * KIB) + b"data"


@pytest.mark.wire("F5")
@pytest.mark.parametrize("direct", [True, False])
@given(frames=st.lists(st.integers(1, 20 * KIB), min_size=1, max_size=30))
def test_a_frame_is_split_only_where_it_does_not_fit(frames: list[int], direct: bool) -> None:
    """What is offered at once is in one write, unless it is longer than a DATA frame can be."""

    async def run() -> None:
        ends, cuts, at = opened(1, direct=direct), set(), 0
        spans = []
        for size in frames:
            ends.offer(1, bytes(size))
            spans.append((at, at + size))
            at += size
        at = 0
        while ends.flushes.marked:
            before = len(ends.pipe.writes)
            ends.flush()
            at += sum(len(data) for _, data, _ in data_frames(ends.pipe.writes[before]))
            cuts.add(at)
        assert at == sum(frames)
        split = [(low, high) for low, high in spans if any(low < cut < high for cut in cuts)]
        assert all(high - low > 16_384 for low, high in split)

    anyio.run(run)


async def test_a_long_body_is_not_copied_for_each_of_its_frames() -> None:
    ends = opened(1)
    ends.offer(1, bytes(8 * KIB * KIB))
    buffer = ends.outgoing.buffers[1]
    tracemalloc.start()
    for _ in range(10):
        assert len(b"".join(buffer.take(16_384))) == 16_384
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * KIB


async def test_a_window_that_shuts_in_mid_frame() -> None:
    ends = Ends(True, window=10)
    ends.open()
    ends.offer(1, b"0123456789abcdef")
    ends.flush()
    ends.deliver()
    assert ends.body(1) == b"0123456789"
    assert ends.windows[1] == 0
    ends.offer(1, b"gh")
    ends.flush()
    ends.deliver()
    assert ends.body(1) == b"0123456789"
    assert not ends.flushes.marked  # it is looked at again when the client says so, not before
    ends.more(1, 3)
    ends.flush()
    ends.deliver()
    assert ends.body(1) == b"0123456789abc"
    ends.end(1)
    ends.settle()
    assert ends.body(1) == b"0123456789abcdefgh"
    assert len(ends.of(StreamEnded, 1)) == 1


async def test_a_window_made_smaller_than_what_has_been_sent() -> None:
    ends = Ends(True, window=100)
    ends.open()
    ends.offer(1, bytes(150))
    ends.flush()
    ends.deliver()
    ends.change(40, 16_384)
    ends.flush()
    ends.deliver()
    assert ends.windows[1] == -60
    ends.more(1, 60)
    ends.flush()
    assert ends.deliver() == []  # 0 is still shut
    ends.change(45, 16_384)
    ends.flush()
    ends.deliver()
    assert len(ends.body(1)) == 105
    ends.end(1)
    ends.settle()
    assert ends.body(1) == bytes(150)


async def test_a_shut_connection_window_shuts_all_its_streams() -> None:
    ends = Ends(True, window=GREAT)
    first, second = ends.open(), ends.open()
    ends.offer(first, bytes(60_000))
    ends.offer(second, bytes(60_000))
    while ends.flushes.marked:
        ends.flush()
    ends.deliver()
    assert ends.windows[0] == 0
    assert len(ends.body(first)) + len(ends.body(second)) == 65_535
    ends.end(first)  # its data comes first, and cannot
    ends.flush()
    assert not ends.deliver()
    third = ends.open()
    ends.end(third)  # what needs no window needs none
    ends.flush()
    ends.deliver()
    assert len(ends.of(StreamEnded, third)) == 1
    ends.end(second)
    ends.settle()
    assert len(ends.body(first)) == len(ends.body(second)) == 60_000


async def test_trailers_come_after_the_last_data() -> None:
    ends = Ends(True, window=5)
    ends.open()
    ends.offer(1, b"0123456789")
    ends.end(1, trailers=True)
    ends.flush()
    ends.deliver()
    assert ends.of(TrailersReceived, 1) == []
    ends.settle()
    assert ends.body(1) == b"0123456789"
    assert len(ends.of(TrailersReceived, 1)) == len(ends.of(StreamEnded, 1)) == 1


def test_who_has_taken_all_has_not_stalled() -> None:
    """However long nothing more comes; and who waits again is given as long as anybody."""

    async def run() -> None:
        ends = Ends(True, window=10)
        ends.open()
        for _ in range(3):
            ends.offer(1, b"0123456789abcdefghij")
            ends.flush_all()
            ends.deliver()
            await asyncio.sleep(LIMITS.stall_timeout - 1)
            ends.more(1, 20)
            ends.flush_all()
            ends.deliver()
            await asyncio.sleep(10 * LIMITS.stall_timeout)
        assert ends.stalled == []
        ends.offer(1, bytes(20))
        ends.flush_all()
        await asyncio.sleep(10 * LIMITS.stall_timeout)
        assert ends.stalled == [1]

    timeless(run())


async def test_nothing_follows_a_reset_of_the_client() -> None:
    """It is known to h2 before it is known to whoever writes."""
    ends = Ends(True)
    ends.open()
    ends.offer(1, b"data")
    ends.leave(1, known=False)
    ends.flush()
    assert (data_frames(ends.pipe.written)) == []
    assert ends.outgoing.buffer_of(1).closed
    assert ends.failures == 0


@pytest.mark.parametrize("direct", [True, False])
async def test_a_failure_of_one_connection_is_told_and_costs_no_other(
    direct: bool, caplog: pytest.LogCaptureFixture
) -> None:
    flushes = ByHand()
    broken, sound = (opened(1, direct=direct, flushes=flushes) for _ in range(2))
    for ends in (broken, sound):
        ends.offer(1, b"data")
    del broken.outgoing.buffers[1]._load  # as good as any fault of ours
    flushes.run()
    assert (broken.failures, sound.failures) == (1, 0)
    assert len(caplog.records) == 1
    assert sound.deliver()


@pytest.mark.parametrize("direct", [True, False])
async def test_over_a_real_socket(direct: bool) -> None:
    """Many streams, long and short, through windows that are never open for all of it."""
    lengths = [1, 100, 16_384, 70_000, 200_000]
    app = Streaming()

    @app.answers
    async def answer(path: str, sink: Any) -> None:
        await sink.start(200, [])
        for letter in b"abc":
            assert sink.offer(bytes([letter]) * (int(path[1:]) // 3))
        sink.end()

    limits = Limits(stream_high=10_000_000, connection_high=10_000_000)
    config = HostConfig(new_request_id, limits, h2_direct_framing=direct)
    async with serving_on(app, [app.listener], config), H2Client.open(app.listener) as client:
        streams = [client.queue(f"/{3 * length}") for length in lengths * 4]
        await client.flush()
        await client.until_ended(*streams)
        for stream_id, length in zip(streams, lengths * 4, strict=True):
            assert client.body(stream_id) == b"a" * length + b"b" * length + b"c" * length
            assert len(client.of(StreamEnded, stream_id)) == 1
            assert not client.of(StreamReset, stream_id)
