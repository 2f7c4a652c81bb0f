"""The answers of an HTTP/1.1 connection: what Hypercorn's protocol sends, said in full."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from hypercorn.events import Closed
from hypercorn.protocol.events import Data, EndBody, Response, StreamClosed
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.typing import H11SendableEvent

from antiphon.transport.bare_errors import dressed, error_for, head_and_body, is_bare
from antiphon.transport.http1_rules import OTHER_CODING, finished_head
from antiphon.transport.http1_sending import Frames
from antiphon.transport.settings import UNREAD_BODY, HostConfig
from antiphon.transport.wire import Wire


class Answering(H11Protocol):
    """The sending side of one connection."""

    config: HostConfig

    def __init__(self, *connection: Any, wire: Wire) -> None:
        super().__init__(*connection)
        self._frames = Frames(self.config, wire)
        self._closed = False
        self._refused = False
        self._has_begun = False
        """Whether the answer to the request has."""
        self._declared = 0
        self._deaf = False
        """Whether what arrives is dropped as it is."""
        self._overrun = False
        """Whether the client sent too much ahead: what arrives is dropped, and the answer that runs
        is the last one."""
        self._is_odd = False
        """Whether nobody can be sure where the request ends, or what its version means by that."""

    async def stream_send(self, event: StreamEvent) -> None:
        """What the application sends. After the end of the connection it is dropped.

        Hypercorn's sends errors of its own without a body, and forgets a handshake that it has
        refused.
        """
        is_late = self._closed or self._deaf
        if is_late and not isinstance(event, StreamClosed):
            # A handler that never waits for anything else could not be cancelled.
            await asyncio.sleep(0)
            return
        self._has_begun = self._has_begun or isinstance(event, Response)
        if isinstance(event, Response) and is_bare(event):
            self._refused = True
            response, event = dressed(event, self.config, (b"connection", b"close"))
            await super().stream_send(response)
        await super().stream_send(event)
        if isinstance(event, EndBody) and self._refused:
            await self.send(Closed())

    async def _of_websocket(self, event: Data) -> None:
        """Bytes of a websocket; one that is not accepted yet may send none.

        Hypercorn's refuses it while the application answers, and never tells that its client has
        gone.
        """
        stream = self.stream
        if not isinstance(stream, WSStream) or stream.handshake.accepted:
            if stream is not None:
                await stream.handle(event)
        elif not self._has_begun:
            # From here on what the application answers goes nowhere.
            await stream.handle(StreamClosed(stream_id=STREAM_ID))
            await self.stream_send(Response(stream_id=STREAM_ID, headers=[], status_code=400))
            await self.stream_send(EndBody(stream_id=STREAM_ID))

    def abandon(self) -> None:
        """Nothing more is sent: nobody waits for that any more."""
        self._closed = True
        self._frames.close()

    async def _close_stream(self) -> None:
        """Hypercorn's knows of no frames."""
        self._frames.close()
        await super()._close_stream()

    @property
    def is_answering(self) -> bool:
        """Whether a request waits for its answer, or for the rest of it."""
        return self.stream is not None

    @property
    def _is_last(self) -> bool:
        """Whether the answer that begins now has to be the last one.

        The request's body is longer than what is dropped to keep a connection. Or nobody can tell
        whether it will come: a client that waits for ``100 Continue`` may send it after the answer
        or leave it out, and then the next request would be taken for the body.
        """
        waits = self.connection.they_are_waiting_for_100_continue
        is_unread = self.connection.their_state is h11.SEND_BODY and self._declared > UNREAD_BODY
        return waits or is_unread or self._overrun or self._is_odd

    async def _ask_for_body(self) -> None:
        if self.connection.they_are_waiting_for_100_continue:
            headers = self.config.response_headers("h11")
            await self._send_h11_event(h11.InformationalResponse(status_code=100, headers=headers))

    async def _send_error_response(self, status_code: int) -> None:
        """Hypercorn's has no body."""
        error = OTHER_CODING if status_code == OTHER_CODING.status else error_for(status_code)
        headers, body = head_and_body(error, self.config)
        headers += [(b"connection", b"close"), *self.config.response_headers("h11")]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        """Hypercorn's has no phrase, and does not say that an answer is the last one."""
        await super()._send_h11_event(finished_head(event, last=self._is_last))
