"""The watch over a client, on a clock that is too coarse to tell a question from its answer."""

from __future__ import annotations

import asyncio
import socket
import sys
from math import inf

import pytest

from antiphon.transport.limits import Limits
from antiphon.transport.peers import PeerWatch, watched_by_the_system


async def test_an_answer_in_the_tick_of_the_question_is_one() -> None:
    loop, asked, lost = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    heard = loop.time()
    questions = 0

    def ask() -> None:
        nonlocal heard, questions
        questions += 1
        assert watch._asked is not None
        heard = watch._asked
        if questions == 3:
            asked.set()

    limits = Limits(peer_silence=0.001, peer_answer=0.001)
    watch = PeerWatch(limits, heard=lambda: heard, owes=lambda: False, ask=ask, lost=lost.set)
    watch.watch(True)
    async with asyncio.timeout(20):
        await asked.wait()
    watch.watch(False)
    assert not lost.is_set()


@pytest.mark.skipif(sys.platform != "linux", reason="the options of Linux")
@pytest.mark.parametrize("seconds", [86_400.0, inf])
def test_the_system_gets_the_longest_time_that_it_takes(seconds: float) -> None:
    limits = Limits(peer_silence=seconds, peer_answer=seconds, stall_timeout=seconds)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        watched_by_the_system(sock, limits)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            assert sock.getsockopt(socket.IPPROTO_TCP, option) == 32_767
        until = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert until == min(2 * seconds * 1000, 2**31 - 1)
