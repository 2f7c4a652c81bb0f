"""Messages on a stream of bytes: eight bytes that say how long and of which kind, then a body.

::

    u32 length   of the body, a multiple of 8
    u8  kind     ``Kind``
    u8  version  ``VERSION``
    u16 mark     ``MARK``

All numbers are little-endian. Whoever reads trusts nothing of it: what is wrong is one
``CodecError``, and no memory is taken for a length before its bytes have come.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum

VERSION = 1
MARK = 0xA71F
MOST = 2**30
"""Bytes of a body. A frame with the logprobs of sixteen prompts of 128k tokens has a third."""
FIRST_ROOM = 2**16

PREFIX = struct.Struct("<IBBH")


class Kind(IntEnum):
    """What a body holds. Commands go to the engine, the others come from it."""

    START = 1
    SUBMIT = 2
    ABORT = 3
    DRAIN = 4
    ABORT_ALL = 5
    PING = 6
    READY = 33
    NOT_STARTED = 34
    FRAME = 35
    PONG = 36
    OVER = 37


class CodecError(Exception):
    """The bytes are no message of this version; the text says where they are wrong."""


def seal(kind: Kind, body: bytes = b"") -> bytes:
    """The message with this body, whose length is a multiple of 8. Raises ``CodecError`` for one
    that is too long."""
    if len(body) > MOST:
        raise CodecError(f"a message of {len(body)} bytes is too long")
    return PREFIX.pack(len(body), kind, VERSION, MARK) + body


def opened(message: bytes | memoryview) -> tuple[Kind, memoryview]:
    """Kind and body of exactly one message. Raises ``CodecError``."""
    reader = Messages()
    found = list(reader.feed(memoryview(message)))
    if len(found) != 1 or reader.waiting:
        raise CodecError(f"{len(message)} bytes are not one message")
    return found[0]


class Messages:
    """Cuts a stream into messages, wherever its pieces end.

    ``room`` is where the next piece is to be written, and ``received`` gives what is whole by
    then. A body is valid until ``received`` is over.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(FIRST_ROOM)
        self._have = 0
        self._needed = PREFIX.size
        """Bytes of the message that has begun, as far as it is known."""

    @property
    def waiting(self) -> int:
        """Bytes of a message that is not whole yet."""
        return self._have

    def room(self) -> memoryview:
        """At least one byte of space. It grows with what has come, never ahead of it."""
        size = len(self._buffer)
        if self._have == size:
            grown = bytearray(min(2 * size, max(self._needed, FIRST_ROOM)))
            grown[:size] = self._buffer
            self._buffer = grown
        elif not self._have and size > FIRST_ROOM:
            self._buffer = bytearray(FIRST_ROOM)
        return memoryview(self._buffer)[self._have :]

    def received(self, count: int) -> Iterator[tuple[Kind, memoryview]]:
        """The messages that are whole now that ``count`` more bytes are there."""
        self._have += count
        view, at = memoryview(self._buffer), 0
        try:
            while True:
                self._needed = PREFIX.size
                if self._have - at < PREFIX.size:
                    return
                length, kind = _prefix(view, at)
                self._needed += length
                if self._have - at < self._needed:
                    return
                body = at + PREFIX.size
                at = body + length
                yield kind, view[body:at]
        finally:
            if at:
                rest = bytes(view[at : self._have])
                view[: len(rest)] = rest
                self._have = len(rest)

    def feed(self, data: memoryview) -> Iterator[tuple[Kind, memoryview]]:
        """The messages in ``data`` and what came before it."""
        while data:
            room = self.room()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            yield from self.received(count)


def _prefix(view: memoryview, at: int) -> tuple[int, Kind]:
    length, kind, version, mark = PREFIX.unpack_from(view, at)
    if mark != MARK:
        raise CodecError("a message does not begin as one")
    if version != VERSION:
        raise CodecError(f"a message is of version {version}; this is version {VERSION}")
    if length > MOST or length % 8:
        raise CodecError(f"a message cannot be {length} bytes long")
    try:
        return length, Kind(kind)
    except ValueError:
        raise CodecError(f"a message is of kind {kind}, which is not known") from None
