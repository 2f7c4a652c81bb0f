"""Which id a client may give its request."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.transport.settings import REQUEST_ID

MAX_GIVEN = 512
_NAME = REQUEST_ID.encode()


def is_usable(given: str) -> bool:
    """Whether ``given`` can be said again: printable ASCII that is not too long."""
    return 0 < len(given) <= MAX_GIVEN and given.isascii() and given.isprintable()


def id_in(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The id that the headers of a request give it, where they give one that is usable."""
    for name, value in headers:
        if name.lower() == _NAME:
            given = value.decode("latin-1")
            return given if is_usable(given) else None
    return None
