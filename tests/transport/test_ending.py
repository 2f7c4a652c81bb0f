"""How a server is told to end."""

from __future__ import annotations

import asyncio
import signal

from antiphon.transport.ending import NUMBERS, Ending


def test_it_is_asked_for_any_number_of_times_and_forced_by_asking_again() -> None:
    ending = Ending()
    ending.ask()
    ending.ask()
    assert ending.asked.is_set()
    assert not ending.forced.is_set()
    ending.ask_again()
    assert ending.forced.is_set()


def test_who_asks_first_does_not_force() -> None:
    ending = Ending()
    ending.ask_again()
    assert ending.asked.is_set()
    assert not ending.forced.is_set()


async def test_once_the_end_is_forced_a_signal_kills() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    ending = Ending()
    with ending.on_signals():
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)
        await ending.forced.wait()
        assert [signal.getsignal(number) for number in NUMBERS] == [signal.SIG_DFL] * 2
    assert [signal.getsignal(number) for number in NUMBERS] == before


async def test_signals_are_heard_in_the_block_alone() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    ending = Ending()
    with ending.on_signals():
        signal.raise_signal(signal.SIGTERM)
        await ending.asked.wait()
        assert not ending.forced.is_set()
        signal.raise_signal(signal.SIGINT)
        await ending.forced.wait()
    assert [signal.getsignal(number) for number in NUMBERS] == before
