"""What waits for an application: in order, no more than fits, and never for one that has gone."""

from __future__ import annotations

import asyncio

from hypercorn.typing import ASGIReceiveEvent, HTTPDisconnectEvent, HTTPRequestEvent
from hypothesis import given
from hypothesis import strategies as st

from antiphon.transport.inbox import OVERHEAD, Inbox
from transport.hosting import GUARD_S

LEFT: HTTPDisconnectEvent = {"type": "http.disconnect"}


LAST: HTTPRequestEvent = {"type": "http.request", "body": b"", "more_body": False}


def piece_of(body: bytes) -> ASGIReceiveEvent:
    return {"type": "http.request", "body": body, "more_body": True}


def body_of(message: ASGIReceiveEvent) -> bytes:
    assert message["type"] == "http.request"
    return message["body"]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@given(
    room=st.integers(1, 5),
    pieces=st.lists(st.binary(max_size=3), max_size=20),
    eager=st.lists(st.booleans(), max_size=60),
)
async def test_all_arrive_in_order_and_no_more_wait_than_fit(
    room: int, pieces: list[bytes], eager: list[bool]
) -> None:
    inbox, put, got = Inbox(OVERHEAD + room), 0, b""

    async def fill() -> None:
        nonlocal put
        for piece in pieces:
            await inbox.put(piece_of(piece))
            put += len(piece)
        await inbox.put(LAST)

    filling = asyncio.ensure_future(fill())
    for take in eager:
        await asyncio.sleep(0)
        if take and put > len(got):
            got += body_of(await inbox.get())
        # One that comes alone is taken, whatever its size.
        assert put - len(got) <= max(room, 3)
    while (message := await inbox.get()) != LAST:
        got += body_of(message)
    await filling
    assert got == b"".join(pieces)


async def test_pieces_that_wait_become_one() -> None:
    inbox = Inbox(None)
    for _ in range(1000):
        await inbox.put(piece_of(b"x"))
    await inbox.put(LAST)
    assert await inbox.get() == piece_of(b"x" * 1000)
    assert await inbox.get() == LAST


async def test_messages_of_a_websocket_stay_apart() -> None:
    inbox = Inbox(2 * OVERHEAD)
    sent: list[ASGIReceiveEvent] = [
        {"type": "websocket.receive", "bytes": None, "text": ""} for _ in range(2)
    ]
    for message in sent:
        await inbox.put(message)
    waiting = asyncio.ensure_future(inbox.put(sent[0]))
    await settle()
    assert not waiting.done()
    assert [await inbox.get(), await inbox.get()] == sent
    await asyncio.wait_for(waiting, GUARD_S)


async def test_who_waits_for_room_goes_on_when_the_application_has_ended() -> None:
    inbox = Inbox(OVERHEAD)
    await inbox.put(piece_of(b"0"))
    waiting = [asyncio.ensure_future(inbox.put(piece_of(b"1"))) for _ in range(2)]
    await settle()
    assert not any(each.done() for each in waiting)
    inbox.close()
    await asyncio.wait_for(asyncio.gather(*waiting), GUARD_S)
    await asyncio.wait_for(inbox.put(piece_of(b"3")), GUARD_S)


async def test_that_the_client_has_gone_needs_no_room_and_is_told_again() -> None:
    inbox = Inbox(OVERHEAD)
    await inbox.put(piece_of(b"0"))
    waiting = asyncio.ensure_future(inbox.put(piece_of(b"1")))
    await settle()
    await asyncio.wait_for(inbox.put(LEFT), GUARD_S)
    await asyncio.wait_for(waiting, GUARD_S)
    assert [await inbox.get(), await inbox.get()] == [LEFT, LEFT]


async def test_who_receives_first_gets_what_comes() -> None:
    inbox = Inbox(OVERHEAD)
    receiving = asyncio.ensure_future(inbox.get())
    await settle()
    await inbox.put(piece_of(b"0"))
    assert await asyncio.wait_for(receiving, GUARD_S) == piece_of(b"0")
