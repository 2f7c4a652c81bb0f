"""What waits for an application: in order, no more than fits, and never for one that has gone."""

from __future__ import annotations

import asyncio

from hypercorn.typing import ASGIReceiveEvent, HTTPDisconnectEvent
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.inbox import Inbox
from transport.hosting import GUARD_S

LEFT: HTTPDisconnectEvent = {"type": "http.disconnect"}


def piece(number: int) -> ASGIReceiveEvent:
    return {"type": "http.request", "body": b"%d" % number, "more_body": True}


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@given(size=st.integers(1, 5), count=st.integers(0, 20), eager=st.lists(st.booleans(), max_size=60))
async def test_all_arrive_in_order_and_no_more_wait_than_fit(
    size: int, count: int, eager: list[bool]
) -> None:
    inbox, put = Inbox(size), 0
    got: list[ASGIReceiveEvent] = []

    async def fill() -> None:
        nonlocal put
        for number in range(count):
            await inbox.put(piece(number))
            put += 1

    filling = asyncio.ensure_future(fill())
    for take in eager:
        await asyncio.sleep(0)
        if take and put > len(got):
            got.append(await inbox.get())
        assert put - len(got) <= size
    while len(got) < count:
        got.append(await inbox.get())
    await filling
    assert got == [piece(number) for number in range(count)]


async def test_who_waits_for_room_goes_on_when_the_application_has_ended() -> None:
    inbox = Inbox(1)
    await inbox.put(piece(0))
    waiting = [asyncio.ensure_future(inbox.put(piece(number))) for number in (1, 2)]
    await settle()
    assert not any(each.done() for each in waiting)
    inbox.close()
    await asyncio.wait_for(asyncio.gather(*waiting), GUARD_S)
    await asyncio.wait_for(inbox.put(piece(3)), GUARD_S)


async def test_that_the_client_has_gone_needs_no_room_and_is_told_again() -> None:
    inbox = Inbox(1)
    await inbox.put(piece(0))
    waiting = asyncio.ensure_future(inbox.put(piece(1)))
    await settle()
    await asyncio.wait_for(inbox.put(LEFT), GUARD_S)
    await asyncio.wait_for(waiting, GUARD_S)
    assert [await inbox.get(), await inbox.get()] == [LEFT, LEFT]


async def test_who_receives_first_gets_what_comes() -> None:
    inbox = Inbox(1)
    receiving = asyncio.ensure_future(inbox.get())
    await settle()
    await inbox.put(piece(0))
    assert await asyncio.wait_for(receiving, GUARD_S) == piece(0)
