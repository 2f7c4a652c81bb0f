"""Refusals that name the field of the request that their cause came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.errors import InvalidRequest


@contextmanager
def placed(inner: str, place: str) -> Iterator[None]:
    """What is refused in this block under the name ``inner``, or a path in it, is at ``place``."""
    try:
        yield
    except InvalidRequest as refusal:
        param = refusal.param
        if param is None or not param.startswith(inner):
            raise
        param = place + param.removeprefix(inner)
        raise InvalidRequest(refusal.message, code=refusal.code, param=param) from None
