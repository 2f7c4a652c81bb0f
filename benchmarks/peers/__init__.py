"""Servers that are measured beside ours, in the same run and by the same client.

``PEERS`` of a module of this package says name to ``Peer``. What it starts is a
``Server``. Counting and accounting are not its business; it only says whose CPU counts. A peer that
is an attrs class with a field ``times`` is told there where to write when its steps leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

Api: TypeAlias = Literal["chat", "completions", "responses"]
Proto: TypeAlias = Literal["h1", "h2", "h2-single"]
"""HTTP/1.1 with a connection per stream, HTTP/2 with all streams on one connection, and HTTP/2 with
a connection per stream."""


class Server(Protocol):
    """A running front end, ready for its first request."""

    @property
    def pid(self) -> int:
        """The root of the process tree whose CPU and memory are those of the front end.

        The engine is not in it: it runs in a tree of its own.
        """
        ...

    @property
    def protocols(self) -> tuple[Proto, ...]:
        """What it can speak."""
        ...

    def request(self, api: Api, tokens: int) -> tuple[str, Mapping[str, str], bytes]:
        """(path, headers, body) of a POST that is answered with a stream of so many tokens.

        Headers are those beyond host, content-type and content-length. Raises ``LookupError`` for
        an API that it does not have.
        """
        ...

    def stop(self) -> None:
        """End the front end and its engine, and wait until they have gone; idempotent."""
        ...


class Peer(Protocol):
    """How a front end is started."""

    @property
    def merges(self) -> bool:
        """Whether it may put several tokens into one event where it falls behind.

        Of one that does not, every event must come, or the run counts for nothing.
        """
        ...

    def available(self) -> str | None:
        """None, or one line that says what is missing to start it here."""
        ...

    def start(
        self, port: int, server_cpu: int, engine_cpu: int, streams: int, step_us: int
    ) -> Server:
        """Start it on 127.0.0.1:``port`` with an engine that never ends a stream before its time.

        The engine brings one token for each of its streams every ``step_us`` microseconds, or as
        fast as it can for 0; at most ``streams`` run at a time. The front end's processes are
        pinned to ``server_cpu``, the engine's to ``engine_cpu``. Returns once requests are
        answered. Raises ``RuntimeError``, one line that says why, if that does not happen.
        """
        ...
