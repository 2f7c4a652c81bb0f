"""The watch over a client, on a clock that is too coarse to tell a question from its answer."""

from __future__ import annotations

import asyncio

from antiphon.transport.limits import Limits
from antiphon.transport.peers import PeerWatch


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
