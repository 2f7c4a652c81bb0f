"""Request ids: the id tail T that every public id of a request ends in (RFC 9562 for UUIDv7)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from quart import g

from antiphon.transport.naming import is_usable

LONGEST = 48
"""Characters of T."""
_TAIL = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")


def tail_of(given: str | None) -> str | None:
    """T for an id that the client gave, None where it gave none that can be used.

    A short id of safe characters is T itself; any other printable ASCII gives 32 hex digits of its
    SHA-256.
    """
    if not given or not is_usable(given):
        return None
    if _TAIL.fullmatch(given):
        return given
    return hashlib.sha256(given.encode()).hexdigest()[:32]


def name_by_body(given: str) -> None:
    """The id in the body of the current request names it where no header did; it gives a T."""
    if not g.tail_given and (tail := tail_of(given)) is not None:
        g.tail = g.request_id = tail


def uuid7_hex(unix_ms: int, random: bytes) -> str:
    """32 hex digits of a version 7 UUID from a time in milliseconds and 10 random bytes."""
    value = unix_ms << 80 | int.from_bytes(random, "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return f"{value:032x}"


def unique(tail: str, taken: Callable[[str], bool], suffix: Callable[[], str]) -> str:
    """``tail``, or with 8 hex digits behind it when a live run has that tail already.

    A long tail is cut for them: ids of calls are made of it, and have at most 64 characters.
    """
    result = tail
    while taken(result):
        result = f"{tail[: LONGEST - 9]}-{suffix()}"
    return result
