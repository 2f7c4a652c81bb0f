"""The server's end of the socket to an engine, which never makes the event loop wait.

Reading and writing fail apart: what the engine has sent before it died is read to its end even
where a command can no longer be written.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable

from antiphon.engines.codec.envelope import CodecError, Kind, Messages

log = logging.getLogger(__name__)

ONE_TURN = 2**20
"""Bytes read in one turn of the event loop; what is left comes in the next."""


class Link:
    """A connected socket, which it owns.

    ``take`` is called for each message, in order, and may raise ``CodecError``. ``ended`` is called
    once, after the last of them, with what is wrong with the bytes, or None if they have ended.
    """

    def __init__(
        self,
        connection: socket.socket,
        take: Callable[[Kind, memoryview], None],
        ended: Callable[[CodecError | None], None],
    ) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._take = take
        self._ended = ended
        self._messages = Messages()
        self._unsent: deque[memoryview] = deque()
        self._deaf = False
        """Whether the other side takes nothing any more."""
        self._open = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)

    @property
    def unsent(self) -> int:
        """Bytes that wait for room in the socket."""
        return sum(map(len, self._unsent))

    def send(self, message: bytes) -> None:
        """Write the message, or keep it until there is room. Nobody reads it if the end is near."""
        if self._deaf or not self._open:
            return
        self._unsent.append(memoryview(message))
        if len(self._unsent) == 1:
            self._write()
            if self._unsent:
                self._loop.add_writer(self._socket.fileno(), self._write)

    def close(self) -> None:
        """Give the socket up; nothing is called any more."""
        if self._open:
            self._open = False
            self._unsent.clear()
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()

    def _write(self) -> None:
        try:
            while self._unsent:
                first = self._unsent[0]
                sent = self._socket.send(first)
                if sent < len(first):
                    self._unsent[0] = first[sent:]
                else:
                    self._unsent.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._deaf = True
            self._unsent.clear()
        self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        left = ONE_TURN
        try:
            while left > 0 and self._open:
                room = self._messages.room()
                count = self._socket.recv_into(room)
                if not count:
                    self._end(None)
                    return
                left -= count
                for kind, body in self._messages.received(count):
                    self._take(kind, body)
                if count < len(room):
                    return
        except (BlockingIOError, InterruptedError):
            return
        except CodecError as wrong:
            self._end(wrong)
        except OSError:  # it went with commands unread
            self._end(None)
        except Exception as failure:
            log.exception("a message of the engine cannot be taken")
            self._end(CodecError(repr(failure)))

    def _end(self, wrong: CodecError | None) -> None:
        cut = self._messages.waiting
        if self._open:
            self.close()
            if wrong is None and cut:
                wrong = CodecError(f"the last message was cut after {cut} bytes")
            self._ended(wrong)
