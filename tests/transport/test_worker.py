"""The server: all protocols on one port, start-up, and every way to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, StreamEnded
from hypercorn.config import Config
from quart import Quart, Response

from antiphon.errors import StartupError
from antiphon.transport.ending import Ending
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve, serve_on
from transport.hosting import (
    GUARD_S,
    H1Client,
    H2Client,
    Tracker,
    certificate,
    new_request_id,
    quart_app,
    serving,
)

CONFIG = HostConfig(new_request_id)


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def app(tracker: Tracker) -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.get("/silent")
    async def silent() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                yield b"first"
                await anyio.sleep_forever()

        return Response(body())

    return app


async def test_http1_and_prior_knowledge_on_one_port(app: Quart) -> None:
    async with serving(app) as listener:
        async with httpx.AsyncClient() as plain:
            answer = await plain.get(f"{listener.url}/hi")
            assert (answer.http_version, answer.text) == ("HTTP/1.1", "hi")
        async with httpx.AsyncClient(http1=False, http2=True) as prior:
            answer = await prior.get(f"{listener.url}/hi")
            assert (answer.http_version, answer.text) == ("HTTP/2", "hi")


async def test_upgrade_to_h2c(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        connection = H2Connection()
        settings = connection.initiate_upgrade_connection()
        assert settings is not None
        await client.send(
            b"GET /hi HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: " + settings + b"\r\n\r\n"
        )
        assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        await client.send(connection.data_to_send())
        body = b""
        with anyio.fail_after(GUARD_S):
            while True:
                events = connection.receive_data(await client.reader.read(65536))
                body += b"".join(each.data for each in events if isinstance(each, DataReceived))
                if any(isinstance(each, StreamEnded) for each in events):
                    break
        assert body == b"hi"


@pytest.mark.parametrize(("http2", "version"), [(True, "HTTP/2"), (False, "HTTP/1.1")])
async def test_alpn_over_tls(app: Quart, tmp_path: Path, http2: bool, version: str) -> None:
    cert, trust = certificate(tmp_path)
    async with serving(app, cert) as listener:
        async with httpx.AsyncClient(verify=trust, http2=http2) as client:
            answer = await client.get(f"{listener.url}/hi")
        assert (answer.http_version, answer.text) == (version, "hi")


async def test_an_upgrade_over_tls_stays_http1(app: Quart, tmp_path: Path) -> None:
    cert, trust = certificate(tmp_path)
    async with serving(app, cert) as listener:
        async with httpx.AsyncClient(verify=trust) as client:
            upgrade = {"connection": "upgrade, http2-settings", "upgrade": "h2c"}
            answer = await client.get(f"{listener.url}/hi", headers=upgrade)
        assert (answer.http_version, answer.text) == ("HTTP/1.1", "hi")


async def test_plain_text_at_a_tls_port_harms_nobody(app: Quart, tmp_path: Path) -> None:
    cert, trust = certificate(tmp_path)
    async with serving(app, cert) as listener:
        async with H1Client.open(listener) as stranger:
            await stranger.send(b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n")
            await stranger.rest()
        async with httpx.AsyncClient(verify=trust) as client:
            assert (await client.get(f"{listener.url}/hi")).text == "hi"


async def test_clients_that_come_before_serving_are_served(app: Quart) -> None:
    stop = Ending()
    with bind("127.0.0.1", 0) as listener:
        async with H1Client.open(listener) as early, asyncio.TaskGroup() as tasks:
            await early.send(b"GET /hi HTTP/1.0\r\n\r\n")
            tasks.create_task(serve_on(app, [listener], stop, config=CONFIG, grace_s=0))
            assert (await early.rest()).endswith(b"hi")
            stop.ask()


async def test_an_application_that_does_not_start_is_a_startup_error() -> None:
    app = quart_app()

    @app.before_serving
    async def fail() -> None:
        raise ValueError("no disk left")

    with bind("127.0.0.1", 0) as listener, pytest.raises(StartupError, match=r"start: .*no disk"):
        await serve_on(app, [listener], Ending(), config=CONFIG, grace_s=0)


async def test_the_application_is_started_and_shut_down_once(app: Quart) -> None:
    calls: list[str] = []

    @app.before_serving
    async def before() -> None:
        calls.append("before")

    @app.after_serving
    async def after() -> None:
        calls.append("after")

    async with serving(app) as listener, H2Client.open(listener) as client:
        assert await client.get("/hi") == b"hi"
        assert calls == ["before"]
    assert calls == ["before", "after"]


async def test_shutdown_closes_idle_connections_and_the_port(app: Quart) -> None:
    stop = Ending()
    async with serving(app, grace_s=GUARD_S, stop=stop) as listener:
        port = listener.port
        used, fresh = H2Client.open(listener), H2Client.open(listener)
        async with used as first, fresh as second, H1Client.open(listener) as third:
            assert await first.get("/hi") == b"hi"
            await second.read()
            await third.send(b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n")
            await third.until(b"\r\n\r\nhi")
            stop.ask()
            for client in (first, second):
                await client.read_to_end()
                assert client.goaways == [ErrorCodes.NO_ERROR]
            assert await third.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


async def test_live_answers_get_their_grace_and_new_streams_are_refused(app: Quart) -> None:
    stop, go_on = Ending(), anyio.Event()

    @app.get("/slow")
    async def slow() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            await go_on.wait()
            yield b" last"

        return Response(body())

    async with serving(app, grace_s=GUARD_S, stop=stop) as listener:
        http2, http1 = H2Client.open(listener), H1Client.open(listener)
        async with http2 as client, http1 as plain:
            stream = await client.request("/slow")
            await plain.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await plain.until(b"first\r\n")
            await client.read_until(lambda: client.body(stream) == b"first")
            stop.ask()
            await anyio.wait_all_tasks_blocked()
            late = await client.request("/hi")
            await client.until_reset(late)
            assert client.reset(late) == ErrorCodes.REFUSED_STREAM
            go_on.set()
            await client.read_to_end()
            assert client.body(stream) == b"first last"
            assert client.ended(stream)
            assert client.goaways == [ErrorCodes.NO_ERROR]
            assert (await plain.rest()).endswith(b" last\r\n0\r\n\r\n")


async def test_answers_beyond_the_grace_are_cut_and_their_handlers_ended(
    app: Quart, tracker: Tracker
) -> None:
    stop = Ending()
    async with serving(app, grace_s=0, stop=stop) as listener:
        http2, http1 = H2Client.open(listener), H1Client.open(listener)
        async with http2 as client, http1 as plain:
            stream = await client.request("/silent")
            await plain.send(b"GET /silent HTTP/1.1\r\nHost: x\r\n\r\n")
            await tracker.until(lambda it: it.live == 2)
            stop.ask()
            await client.read_to_end()
            assert not client.ended(stream)
            assert client.goaways == [ErrorCodes.NO_ERROR]
            assert not (await plain.rest()).endswith(b"0\r\n\r\n")
    assert tracker.live == 0


async def test_a_reader_that_has_stopped_does_not_hold_the_shutdown(app: Quart) -> None:
    @app.get("/flood")
    async def flood() -> Response:
        async def body() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield bytes(65536)
            finally:
                ended.set()

        return Response(body())

    stop, ended = Ending(), anyio.Event()
    with anyio.fail_after(GUARD_S):
        async with serving(app, stop=stop) as listener, H1Client.open(listener) as plain:
            await plain.send(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
            await plain.until(b"\r\n\r\n")
            await anyio.wait_all_tasks_blocked()
            stop.ask()
            await ended.wait()


SCRIPT = """
import asyncio, sys
from quart import Quart, Response
from antiphon.transport.quart_host import AntiphonHTTPConnection
from antiphon.transport.ending import Ending
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on

app = Quart("signals")
app.asgi_http_class = AntiphonHTTPConnection

@app.get("/silent")
async def silent():
    async def body():
        try:
            yield b"first"
            await asyncio.sleep(3600)
        finally:
            print("ended", flush=True)
    return Response(body())

async def main():
    ending = Ending()
    with bind("127.0.0.1", 0) as listener, ending.on_signals():
        print(listener.port, flush=True)
        config = HostConfig(str)
        await serve_on(app, [listener], ending, config=config, grace_s=float(sys.argv[1]))
    print("served", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_with_status_0(number: signal.Signals) -> None:
    async with await anyio.open_process([sys.executable, "-c", SCRIPT, "0"]) as process:
        lines = Lines(process)
        async with live_stream(int(await lines.next())) as client:
            process.send_signal(number)
            await client.read_to_end()
        assert await lines.next() == "ended"
        assert await lines.next() == "served"
        with anyio.fail_after(GUARD_S):
            assert await process.wait() == 0


async def test_a_second_signal_ends_the_grace() -> None:
    async with await anyio.open_process([sys.executable, "-c", SCRIPT, "3600"]) as process:
        lines = Lines(process)
        port = int(await lines.next())
        async with live_stream(port) as client, idle(port) as other:
            process.send_signal(signal.SIGTERM)
            await other.read_to_end()  # the first signal has been handled
            assert not client.eof
            process.send_signal(signal.SIGTERM)
            await client.read_to_end()
        assert await lines.next() == "ended"
        with anyio.fail_after(GUARD_S):
            assert await process.wait() == 0


class Lines:
    """The lines a process prints."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._stream = BufferedByteReceiveStream(process.stdout)

    async def next(self) -> str:
        with anyio.fail_after(GUARD_S):
            return (await self._stream.receive_until(b"\n", 1000)).decode()


@asynccontextmanager
async def live_stream(port: int) -> AsyncIterator[H2Client]:
    """A client with a stream that has begun and will not end."""
    async with H2Client.connect(port) as client:
        stream = await client.request("/silent")
        await client.read_until(lambda: client.body(stream) == b"first")
        yield client


@asynccontextmanager
async def idle(port: int) -> AsyncIterator[H2Client]:
    """A client that has done nothing but to connect."""
    async with H2Client.connect(port) as client:
        await client.read()
        yield client


async def test_new_connections_are_taken_until_the_drain_has_ended(app: Quart) -> None:
    stop, draining, drained = Ending(), asyncio.Event(), asyncio.Event()

    async def drain() -> None:
        draining.set()
        await drained.wait()

    with bind("127.0.0.1", 0) as listener:
        port = listener.port
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(
                serve_on(app, [listener], stop, config=CONFIG, grace_s=GUARD_S, drain=drain)
            )
            stop.ask()
            await draining.wait()
            async with H2Client.open(listener) as client:
                assert await client.get("/hi") == b"hi"
            drained.set()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


async def test_a_trigger_that_fails_ends_the_server_with_its_failure(app: Quart) -> None:
    async def fail() -> None:
        raise LookupError("no trigger")

    config = Config()
    config.bind = ["127.0.0.1:0"]
    with pytest.raises(LookupError, match="no trigger"):
        await serve(app, config, shutdown_trigger=fail)


@pytest.fixture
def config() -> Config:
    """Hypercorn's, for a socket of this test."""
    config = Config()
    config.bind = [f"fd://{socket.create_server(('127.0.0.1', 0)).detach()}"]
    config.graceful_timeout = 0
    return config


def fd_of(config: Config) -> int:
    return int(config.bind[0].removeprefix("fd://"))


@asynccontextmanager
async def in_its_place(app: Quart, config: Config) -> AsyncIterator[int]:
    """Served as by Hypercorn, on the port that is given."""
    trigger = asyncio.Event()
    with socket.socket(fileno=os.dup(fd_of(config))) as same:
        port = same.getsockname()[1]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(app, config, shutdown_trigger=trigger.wait))
        yield port
        trigger.set()


async def test_hypercorns_settings_count(app: Quart, tracker: Tracker, config: Config) -> None:
    config.h2_max_concurrent_streams = 7
    async with in_its_place(app, config) as port, H2Client.connect(port) as client:
        stream = await client.request("/silent")
        await client.read_until(lambda: client.body(stream) == b"first")
        assert client.h2.remote_settings.max_concurrent_streams == 7
    await client.read_to_end()
    assert tracker.live == 0


async def test_hypercorns_certificate_counts(app: Quart, config: Config, tmp_path: Path) -> None:
    (chain, key), trust = certificate(tmp_path)
    config.certfile, config.keyfile = str(chain), str(key)
    safe = httpx.AsyncClient(verify=trust, http2=True)
    async with in_its_place(app, config) as port, safe as client:
        answer = await client.get(f"https://127.0.0.1:{port}/hi")
    assert (answer.http_version, answer.text) == ("HTTP/2", "hi")


async def test_hypercorns_idle_limit_counts(app: Quart, config: Config) -> None:
    config.keep_alive_timeout = 0.01
    async with in_its_place(app, config) as port, H2Client.connect(port) as client:
        await client.read_to_end()
        assert client.goaways == [ErrorCodes.NO_ERROR]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ca_certs", "ca.pem"),
        ("verify_mode", ssl.CERT_REQUIRED),
        ("keyfile_password", "secret"),
        ("insecure_bind", ["127.0.0.1:0"]),
        ("quic_bind", ["127.0.0.1:0"]),
        ("workers", 2),
        ("ciphers", "ECDHE+CHACHA20"),
        ("server_names", ["example.org"]),
        ("root_path", "/below"),
        ("ssl_handshake_timeout", 1.0),
        ("backlog", 7),
    ],
)
async def test_settings_that_it_would_not_keep_are_refused(
    app: Quart, config: Config, name: str, value: object
) -> None:
    setattr(config, name, value)
    with pytest.raises(StartupError, match=name):
        await serve(app, config)
    os.close(fd_of(config))
