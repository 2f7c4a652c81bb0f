"""An ASGI application that answers through the frame sink of its host, and no other way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from antiphon.transport.listener import Listener, bind
from antiphon.transport.sink import FRAMES, FrameSink

Answer: TypeAlias = Callable[[str, FrameSink], Awaitable[None]]
Plain: TypeAlias = Callable[[Scope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]


class Streaming:
    """``answers`` takes what answers a request by its sink, ``plain`` what has all of ASGI."""

    def __init__(self, cert: tuple[Path, Path] | None = None) -> None:
        self.listener: Listener = bind("127.0.0.1", 0, *(cert or ()))
        self._plain: Plain | None = None

    def answers(self, answer: Answer) -> Answer:
        async def call(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            assert scope["type"] == "http"
            sink = sink_of(scope)
            await answer(scope["path"], sink)
            await sink.finished()

        self._plain = call
        return answer

    def plain(self, answer: Plain) -> Plain:
        self._plain = answer
        return answer

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError
        assert self._plain is not None
        await self._plain(scope, receive, send)


def sink_of(scope: Scope) -> FrameSink:
    """The sink in the scope."""
    extensions: dict[str, Any] = scope["extensions"]  # type: ignore[typeddict-item]
    sink: FrameSink = extensions[FRAMES]
    return sink
