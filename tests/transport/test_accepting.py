"""How many connections are taken, and what becomes of the others."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from quart import Quart

from antiphon.transport import accepting as accepting_module
from antiphon.transport.accepting import Acceptor, accepting
from antiphon.transport.limits import Limits
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from transport.hosting import (
    GUARD_S,
    H1Client,
    certificate,
    new_request_id,
    quart_app,
    serving_on,
)


@pytest.fixture
def app() -> Quart:
    app = quart_app()

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    return app


HI = b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_one_too_many_waits_until_another_has_gone(app: Quart) -> None:
    config = HostConfig(new_request_id, Limits(max_connections=2))
    listener = bind("127.0.0.1", 0)
    async with (
        serving_on(app, [listener], config),
        H1Client.open(listener) as first,
        H1Client.open(listener) as second,
    ):
        for client in (first, second):
            await client.send(HI)
            await client.until(b"hi")
        assert config.counted.accept_pauses == 0
        async with H1Client.open(listener) as third:
            await third.send(HI)
            await until(lambda: config.counted.accept_pauses == 1)
            for client in (first, second):  # Those that are open notice nothing.
                await client.send(HI)
                await client.until(b"hi")
            first.writer.close()
            await third.until(b"hi")
        assert config.counted.accept_pauses == 1


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(GUARD_S):
        while not condition():  # noqa: ASYNC110 (a plain number tells nobody that it has changed)
            await anyio.sleep(0.001)


async def test_open_connections_are_counted(app: Quart) -> None:
    config = HostConfig(new_request_id)
    listener = bind("127.0.0.1", 0)
    async with serving_on(app, [listener], config):
        async with H1Client.open(listener) as client:
            await client.send(HI)
            await client.until(b"hi")
            assert config.counted.connections == 1
        await until(lambda: config.counted.connections == 0)


class Exhausted:
    """A listening socket of a process that may open no more files, ``times`` times."""

    def __init__(self, real: socket.socket, times: int) -> None:
        self.real = real
        self.times = times

    def accept(self) -> Any:
        if self.times:
            self.times -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return self.real.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


async def test_it_takes_a_breath_when_there_are_too_many_open_files(
    app: Quart, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting_module, "BREATH_S", 0.01)
    listener = bind("127.0.0.1", 0)
    exhausted = Exhausted(listener.socket, 3)
    listener.socket = exhausted  # type: ignore[assignment]
    config = HostConfig(new_request_id)
    line = "no connection can be accepted: Too many open files"
    async with serving_on(app, [listener], config):
        for episode in (1, 2):
            async with H1Client.open(listener) as client:
                await client.send(HI)
                await client.until(b"hi")
            assert [each.getMessage() for each in caplog.records] == [line] * episode
            assert config.counted.accept_pauses == episode
            exhausted.times = 3


async def test_a_connection_that_fails_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise RuntimeError

    config, listener = HostConfig(new_request_id), bind("127.0.0.1", 0)
    async with accepting([listener], fail, config):
        async with H1Client.open(listener) as client:
            with anyio.fail_after(GUARD_S), suppress(ConnectionResetError):
                assert await client.reader.read(1) == b""
        await until(lambda: config.counted.connections == 0)
    assert [each.getMessage() for each in caplog.records] == ["a connection failed"]


async def test_the_end_gives_up_handshakes(
    app: Quart, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair, _ = certificate(tmp_path)
    config, listener = HostConfig(new_request_id), bind("127.0.0.1", 0, *pair)
    with anyio.fail_after(GUARD_S):
        async with H1Client.open(listener) as silent:
            async with serving_on(app, [listener], config, grace_s=3600):
                await until(lambda: config.counted.connections == 1)
            assert await silent.rest() == b""
    assert config.counted.connections == 0
    assert not caplog.records


async def test_a_connection_that_was_taken_in_the_last_turn_is_closed() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError

    with bind("127.0.0.1", 0) as listener:
        acceptor = Acceptor([listener], never, HostConfig(new_request_id))
        client = socket.create_connection(("127.0.0.1", listener.port))
        acceptor._accept(listener)
        acceptor.close()
        await acceptor.ended()
        with client:
            client.settimeout(GUARD_S)
            assert client.recv(1) == b""
    gc.collect()  # A socket that nobody closed would be a warning.


async def test_a_failure_costs_its_connection_and_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        raise LookupError("mistake")

    listener = bind("127.0.0.1", 0)
    async with accepting([listener], fail, HostConfig(new_request_id)):
        for _ in range(2):
            async with H1Client.open(listener) as client:
                assert await client.rest() == b""
    assert [each.getMessage() for each in caplog.records] == ["a connection failed"] * 2
