"""Closing a connection without taking from its client what was sent last.

A socket that is closed is reset when the client sends anything more, and one of HTTP/2 does: it
gives back the windows of what it reads. With the reset goes all that it has not read yet. So the
end is told, what still comes is dropped, and the socket is closed when the client has closed it,
or has all there is and is silent.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress

HUSH_S = 0.5
"""Of silence, from a client that has everything."""
CHATTER_S = 2.0
"""For one that has everything and goes on sending."""
STUCK_S = 10.0
"""Without taking a byte, of a client that has not."""
AGREED_S = 0.25
"""For a client that has everything to agree to the end of TLS."""
LOOK_S = 0.02
"""Between two looks at the socket: nobody tells when it is empty."""


async def hear_out(until_read: Callable[[], Awaitable[object]], served: float) -> None:
    """Let an HTTP/2 client read its last answers, which ended when it was ``served``, first.

    Some, and httpx is one, give up all of their streams as soon as they hear of the end, also those
    whose own end they have read and not looked at yet.
    """
    rest = served + HUSH_S - asyncio.get_running_loop().time()
    if rest > 0:
        with suppress(TimeoutError):
            await asyncio.wait_for(until_read(), rest)


async def see_off(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, touched: Callable[[], float]
) -> None:
    """Wait until a client that has been told of the end is done with the connection.

    ``touched`` is when it was last heard, or heard something, by the loop's clock: one that has
    been silent for long already is not waited for. What it sends has to be read meanwhile. Where
    the system does not tell what is unsent, silence alone counts.
    """
    loop = asyncio.get_running_loop()
    with suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()
    began, left = loop.time(), unsent(writer)
    moved, emptied = began, touched()
    while not (reader.at_eof() or writer.transport.is_closing()):
        now, before, left = loop.time(), left, unsent(writer)
        if left < before:
            moved = emptied = now
        if left and now - moved >= STUCK_S:
            return
        if not left and (
            now - max(emptied, touched()) >= HUSH_S or now - max(moved, began) >= CHATTER_S
        ):
            return
        await asyncio.sleep(LOOK_S)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close the socket once all is written, or drop it when the client does not read.

    asyncio's TLS waits for the client to agree, for half a minute, and forgets its connection when
    it is closed twice.
    """
    with suppress(NotImplementedError, OSError, RuntimeError):
        writer.write_eof()
    if not writer.is_closing():
        writer.close()
    loop = asyncio.get_running_loop()
    closed = asyncio.ensure_future(_closed(writer))
    left, moved = unsent(writer), loop.time()
    while not (await asyncio.wait({closed}, timeout=LOOK_S))[0]:
        now, before, left = loop.time(), left, unsent(writer)
        moved = now if left < before else moved
        if now - moved >= (STUCK_S if left else AGREED_S):
            writer.transport.abort()
            return


async def _closed(writer: asyncio.StreamWriter) -> None:
    """All who wait share one future, and one that was cancelled would cancel it: this never is."""
    with suppress(OSError, RuntimeError):  # It is closed, one way or another.
        await writer.wait_closed()


def unsent(writer: asyncio.StreamWriter) -> int:
    """Bytes that the client's system has not taken; of the system's own buffer 0 if not known."""
    size: int = writer.transport.get_write_buffer_size()
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is not None and sys.platform == "linux":
        with suppress(OSError, ValueError):  # it may be closed
            told = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
            size += struct.unpack("i", told)[0]
    return size
