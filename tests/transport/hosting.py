"""A server for the length of a test, and its clients, all in the test's own event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import anyio
import attrs
import trustme
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hypercorn.typing import ASGIFramework
from hyperframe.frame import Frame, GoAwayFrame
from quart import Quart

from antiphon.transport.ending import Ending
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.listener import Listener, bind
from antiphon.transport.quart_host import AntiphonHTTPConnection
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on

GUARD_S = 20.0
"""Longer than anything takes; nothing is measured by it."""


OWN_ID = "named-by-the-host"
"""What the host calls a request that the application never hears of."""


def new_request_id() -> str:
    return OWN_ID


def quart_app() -> Quart:
    app = Quart("tested", static_folder=None)
    app.asgi_http_class = AntiphonHTTPConnection
    return app


@attrs.define
class Tracker:
    """How many handlers are in a block, and a way to wait for that."""

    entered: int = 0
    left: int = 0
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def live(self) -> int:
        return self.entered - self.left

    def __enter__(self) -> Tracker:
        self.entered += 1
        self._tell()
        return self

    def __exit__(self, *_: object) -> None:
        self.left += 1
        self._tell()

    async def until(self, condition: Callable[[Tracker], bool]) -> None:
        with anyio.fail_after(GUARD_S):
            while not condition(self):
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@asynccontextmanager
async def serving(
    app: ASGIFramework,
    cert: tuple[Path, Path] | None = None,
    grace_s: float = 0,
    stop: Ending | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> AsyncIterator[Listener]:
    """The app behind a real socket. ``stop`` shuts the server down, and so does leaving the block,
    which waits for it."""
    config = HostConfig(new_request_id, limits)
    listener = bind("127.0.0.1", 0, *(cert or ()))
    async with serving_on(app, [listener], config, grace_s, stop):
        yield listener


@asynccontextmanager
async def serving_on(
    app: ASGIFramework,
    listeners: Sequence[Listener],
    config: HostConfig | None = None,
    grace_s: float = 0,
    stop: Ending | None = None,
) -> AsyncIterator[None]:
    """The same on any listeners, which are closed at the end."""
    config, stop = config or HostConfig(new_request_id), stop or Ending()
    with ExitStack() as stack:
        for listener in listeners:
            stack.enter_context(listener)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve_on(app, listeners, stop, config=config, grace_s=grace_s))
            try:
                yield
            finally:
                stop.ask()


def certificate(directory: Path) -> tuple[tuple[Path, Path], ssl.SSLContext]:
    """(certificate file, key file) for localhost, and a client context that trusts it."""
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost", "127.0.0.1")
    chain, key = directory / "chain.pem", directory / "key.pem"
    leaf.private_key_pem.write_to_path(key)
    for pem in leaf.cert_chain_pems:
        pem.write_to_path(chain, append=True)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return (chain, key), client


class PatientH2(H2Connection):
    """Reads on after a GOAWAY, as a client must (RFC 9113, section 6.8); h2 itself would not."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[events.Event]]:
        before = self.state_machine.state
        result = super()._receive_goaway_frame(frame)
        self.state_machine.state = before
        return result


E = TypeVar("E", bound=events.Event)


@attrs.define
class H2Client:
    """HTTP/2 with prior knowledge. ``seen`` is all that has been read so far."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    h2: H2Connection
    seen: list[events.Event] = attrs.field(factory=list)
    eof: bool = False
    acknowledge: bool = True

    @classmethod
    @asynccontextmanager
    async def open(cls, listener: Listener, window: int | None = None) -> AsyncIterator[H2Client]:
        """Connected to ``listener``; ``window`` as in ``connect``."""
        async with cls.connect(listener.port, window) as client:
            yield client

    @classmethod
    @asynccontextmanager
    async def connect(cls, port: int, window: int | None = None) -> AsyncIterator[H2Client]:
        """``window`` is the first window of every stream; None leaves it at 64 KiB."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        connection = PatientH2(H2Configuration(client_side=True))
        if window is not None:
            connection.local_settings = Settings(
                client=True,
                initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window},
            )
        connection.initiate_connection()
        client = cls(reader, writer, connection)
        await client.flush()
        try:
            yield client
        finally:
            await client.close()

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    def queue(
        self,
        path: str,
        method: str = "GET",
        *,
        end: bool = True,
        headers: Iterable[tuple[str, str]] = (),
    ) -> int:
        stream_id: int = self.h2.get_next_available_stream_id()
        pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.h2.send_headers(stream_id, [*pseudo, *headers], end_stream=end)
        return stream_id

    async def request(self, path: str, method: str = "GET", *, end: bool = True) -> int:
        stream_id = self.queue(path, method, end=end)
        await self.flush()
        return stream_id

    async def upload(self, stream_id: int, body: bytes, *, end: bool = True) -> None:
        """Send ``body`` as the server's windows allow."""
        at = 0
        while at < len(body):
            await self.read_until(lambda: self.h2.local_flow_control_window(stream_id) > 0)
            room = min(
                self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size
            )
            self.h2.send_data(stream_id, body[at : at + room])
            at += room
            await self.flush()
        if end:
            self.h2.end_stream(stream_id)
            await self.flush()

    async def read_until(self, condition: Callable[[], bool]) -> None:
        """Read until ``condition()``. The end of the connection before that is a failure."""
        with anyio.fail_after(GUARD_S):
            while not condition():
                assert await self.read(), f"the connection ended: {self.seen}"

    async def until_ended(self, *stream_ids: int) -> None:
        await self.read_until(lambda: self.ended(*stream_ids))

    async def until_reset(self, stream_id: int) -> None:
        await self.read_until(lambda: self.reset(stream_id) is not None)

    async def until_begun(self, stream_id: int) -> None:
        await self.read_until(lambda: self.status(stream_id) is not None)

    async def read(self) -> bool:
        """Take what arrives next; False at the end of the connection."""
        try:
            data = await self.reader.read(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.eof = True
            return False
        new = self.h2.receive_data(data)
        for event in new:
            if isinstance(event, events.DataReceived) and self.acknowledge:
                with suppress(ProtocolError):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.seen += new
        if not self.writer.is_closing():
            await self.flush()
        return True

    async def read_to_end(self) -> None:
        with anyio.fail_after(GUARD_S):
            while await self.read():
                pass

    def of(self, kind: type[E], stream_id: int | None = None) -> list[E]:
        return [
            event
            for event in self.seen
            if isinstance(event, kind)
            and (stream_id is None or getattr(event, "stream_id", None) == stream_id)
        ]

    def ended(self, *stream_ids: int) -> bool:
        return all(self.of(events.StreamEnded, each) for each in stream_ids)

    def body(self, stream_id: int) -> bytes:
        return b"".join(each.data for each in self.of(events.DataReceived, stream_id))

    def status(self, stream_id: int) -> str | None:
        for event in self.of(events.ResponseReceived, stream_id):
            headers = {bytes(name): bytes(value) for name, value in event.headers}
            return headers[b":status"].decode()
        return None

    def reset(self, stream_id: int) -> int | None:
        """The code of the server's RST_STREAM, if there was one."""
        codes = [int(each.error_code) for each in self.of(events.StreamReset, stream_id)]
        return codes[0] if codes else None

    @property
    def goaways(self) -> list[int]:
        return [int(each.error_code or 0) for each in self.of(events.ConnectionTerminated)]

    async def get(self, path: str) -> bytes:
        """The body of a whole answer."""
        stream_id = await self.request(path)
        await self.until_ended(stream_id)
        return self.body(stream_id)


@attrs.define
class H1Client:
    """A plain socket."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    @asynccontextmanager
    async def open(cls, listener: Listener) -> AsyncIterator[H1Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until(self, mark: bytes) -> bytes:
        with anyio.fail_after(GUARD_S):
            return await self.reader.readuntil(mark)

    async def rest(self) -> bytes:
        with anyio.fail_after(GUARD_S):
            return await self.reader.read(-1)
