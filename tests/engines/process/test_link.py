"""What goes through the socket: frames of any size, whoever is slow."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from array import array
from pathlib import Path

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.child.link import Link
from antiphon.engines.codec.envelope import CodecError, Kind, Messages, seal
from antiphon.engines.port import Finish
from engines.frame_watch import HANG_GUARD_S
from engines.process.fake_child import BIG, BURST
from engines.process.rigs import HELD, ask, fake, started


async def test_a_frame_of_18_mb_comes_whole() -> None:
    engine = fake()
    async with started(engine) as watch:
        engine.submit(ask(1, of="big", max_tokens=HELD))
        await watch.finished(1)
        scores = watch[1].prompt_lp
        assert scores is not None
        assert len(scores.logprob) == BIG
        assert set(scores.top_id) == {ord("a")}
        engine.submit(ask(2))
        await watch.finished(2)


async def test_an_engine_does_not_wait_for_a_slow_server(tmp_path: Path) -> None:
    """The event loop stands still until the engine has made more frames than the socket holds."""
    engine = fake(made=str(tmp_path / "made"))
    os.mkfifo(tmp_path / "made")
    async with started(engine) as watch:
        engine.submit(ask(1, of="burst", max_tokens=10**6))
        (tmp_path / "made").read_bytes()
        await watch.finished(1)
        assert len(watch[1].tokens) == 20 * BURST
        assert watch[1].finish is Finish.STOP


async def test_an_engine_that_is_stopped_holds_no_server() -> None:
    """More than the socket takes is submitted at once; all of it arrives."""
    engine = fake()
    async with started(engine) as watch:
        assert engine.process is not None
        os.kill(engine.process.pid, signal.SIGSTOP)
        for key in range(64):
            engine.submit(attrs.evolve(ask(key), prompt=array("I", bytes(40_000))))
        engine.submit(ask(64, max_tokens=HELD))
        engine.abort([64])
        os.kill(engine.process.pid, signal.SIGCONT)
        await watch.finished(*range(65))
        assert {watch[key].finish for key in range(64)} == {Finish.LENGTH}
        assert watch[64].finish is Finish.ABORT


async def test_a_request_that_cannot_be_sent_is_refused() -> None:
    engine = fake()
    async with started(engine) as watch:
        engine.submit(ask(1))
        engine.submit(attrs.evolve(ask(2), allowed_ids=(-1,)))
        engine.submit(ask(3))
        await watch.finished(1, 2, 3)
        error = watch[2].error
        assert error is not None
        assert error.code == "unsupported"
        assert watch[1].finish is watch[3].finish is Finish.LENGTH


async def test_a_stop_with_grace_lets_requests_end() -> None:
    """Though the interrupt that stops the server has reached the engine's process too."""
    engine = fake()
    async with started(engine) as watch:
        engine.submit(ask(1, max_tokens=900))
        await watch.grown(1, 1)
        assert engine.process is not None
        os.kill(engine.process.pid, signal.SIGINT)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.stop, HANG_GUARD_S)
            await watch.end()
        assert (len(watch[1].tokens), watch[1].finish) == (900, Finish.LENGTH)
        assert engine.process.status == 0
        engine.submit(ask(2))
        assert engine.process.story() == "left with status 0"


async def test_signals_of_the_terminal_are_for_the_server() -> None:
    engine = fake()
    async with started(engine) as watch:
        assert engine.process is not None
        assert os.getpgid(engine.process.pid) != os.getpgid(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(engine.process.pid, number)
        engine.submit(ask(1))
        await watch.finished(1)
        assert watch[1].finish is Finish.LENGTH


class Ends:
    """Both ends of a link, and what comes out of ours."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.theirs.setblocking(False)
        self.messages: list[tuple[Kind, bytes]] = []
        self.over: asyncio.Future[CodecError | None] = asyncio.get_running_loop().create_future()
        self.link = Link(ours, self._take, self.over.set_result)

    def _take(self, kind: Kind, body: memoryview) -> None:
        self.messages.append((kind, bytes(body)))

    async def say(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.theirs, data)

    async def ended(self) -> CodecError | None:
        self.theirs.close()
        with anyio.fail_after(HANG_GUARD_S):
            return await self.over


BODIES = st.lists(st.integers(0, 40_000).map(lambda eights: bytes(8 * eights)), max_size=4)


@given(BODIES, st.data())
async def test_messages_come_whole_from_any_pieces(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(seal(Kind.FRAME, body) for body in bodies)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    ends = Ends()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        await ends.say(stream[start:end])
        await anyio.lowlevel.checkpoint()
    assert await ends.ended() is None
    assert ends.messages == [(Kind.FRAME, body) for body in bodies]


async def test_commands_that_find_no_room_are_kept_in_order() -> None:
    ends, messages, found = Ends(), Messages(), list[bytes]()
    bodies = [bytes([number]) * 8 * 1000 * number for number in range(1, 60)]
    for body in bodies:
        ends.link.send(seal(Kind.SUBMIT, body))
    assert ends.link.unsent > 10**6
    loop = asyncio.get_running_loop()
    with anyio.fail_after(HANG_GUARD_S):
        while len(found) < len(bodies):
            piece = await loop.sock_recv(ends.theirs, 10_000)
            found += [bytes(body) for _, body in messages.feed(memoryview(piece))]
    assert found == bodies
    assert ends.link.unsent == 0
    ends.link.close()
    ends.theirs.close()


@pytest.mark.parametrize("rest", [b"x", seal(Kind.FRAME, bytes(64))[:-1]])
async def test_a_message_that_is_cut_is_told(rest: bytes) -> None:
    ends = Ends()
    await ends.say(seal(Kind.PONG) + rest)
    wrong = await ends.ended()
    assert wrong is not None
    assert "cut" in str(wrong)
    assert ends.messages == [(Kind.PONG, b"")]


async def test_a_fault_of_ours_is_told_and_ends_the_link(caplog: pytest.LogCaptureFixture) -> None:
    ends = Ends()

    def broken(kind: Kind, body: memoryview) -> None:
        raise ZeroDivisionError

    ends.link._take = broken
    await ends.say(seal(Kind.PONG))
    with anyio.fail_after(HANG_GUARD_S):
        assert "ZeroDivisionError" in str(await ends.over)
    assert "cannot be taken" in caplog.text
    ends.theirs.close()
