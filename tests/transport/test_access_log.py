"""The access log: what is told of a request, and that no disk holds up a server."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Quart, Response, request

from antiphon.errors import StartupError
from antiphon.transport import access_lines
from antiphon.transport.access_lines import writing
from antiphon.transport.access_log import AccessLog, Entry
from antiphon.transport.addresses import UnixAddress
from antiphon.transport.counted import Counted
from antiphon.transport.front import fronted
from antiphon.transport.limits import Limits
from antiphon.transport.listener import Listener, bind, listen
from antiphon.transport.settings import HostConfig
from antiphon.transport.sink import FRAMES
from transport.hosting import H1Client, H2Client, Tracker, new_request_id, quart_app, serving_on

ENTRY = Entry(client="192.0.2.7", peer=None, method="GET", path="/x", status=200)


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def app(tracker: Tracker) -> Quart:
    app = quart_app()

    @app.get("/hi/<name>")
    async def hi(name: str) -> Response:
        return Response(f"hi {name}", headers={"x-request-id": "named"})

    @app.get("/silent")
    async def silent() -> Response:
        async def body() -> AsyncIterator[bytes]:
            with tracker:
                yield b"first"
                await anyio.sleep_forever()

        return Response(body())

    @app.get("/never")
    async def never() -> str:
        with tracker:
            await anyio.sleep_forever()
            return ""

    return app


@asynccontextmanager
async def logged(app: Quart, listener: Listener) -> AsyncIterator[list[Entry]]:
    """Served, with what was told of its requests. The clock moves a second with each look."""
    told: list[Entry] = []
    seconds = iter(range(1000))
    async with serving_on(AccessLog(app, told.append, lambda: next(seconds)), [listener]):
        yield told


@pytest.mark.parametrize("http2", [False, True])
async def test_a_request(app: Quart, http2: bool) -> None:
    async with (
        logged(app, listener := bind("127.0.0.1", 0)) as told,
        httpx.AsyncClient(http1=not http2, http2=http2) as client,
    ):
        await client.get(f"{listener.url}/hi/a%0Ab?key=secret")
    assert told == [
        Entry(
            client="127.0.0.1",
            peer=None,
            method="GET",
            path="/hi/a%0Ab",
            id="named",
            status=200,
            bytes=len("hi a\nb"),
            seconds=1,
        )
    ]


async def test_requests_whose_clients_leave(app: Quart, tracker: Tracker) -> None:
    async with logged(app, listener := bind("127.0.0.1", 0)) as told:
        async with H2Client.open(listener) as client:
            stream = await client.request("/silent")
            await client.read_until(lambda: client.body(stream) == b"first")
            await client.request("/never")
            await tracker.until(lambda it: it.live == 2)
        await tracker.until(lambda it: it.live == 0)
    left = sorted((each.path, each.status, each.bytes) for each in told)
    assert left == [("/never", None, 0), ("/silent", 200, 5)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
async def test_the_process_at_the_other_end(
    app: Quart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with logged(app, listen(UnixAddress(Path("a.sock")))) as told:
        for http2 in (False, True):
            transport = httpx.AsyncHTTPTransport(uds="a.sock", http1=not http2, http2=http2)
            async with httpx.AsyncClient(transport=transport) as client:
                await client.get("http://any/hi/a")
    for entry in told:
        assert entry.client is None
        assert entry.peer is not None
        assert (entry.peer.pid, entry.peer.uid) == (os.getpid(), os.getuid())
    assert len(told) == 2


@pytest.mark.parametrize("http2", [False, True])
async def test_what_the_host_answers_by_itself(app: Quart, tmp_path: Path, http2: bool) -> None:
    """A body that does not come, a header block that is too long; behind a proxy, too."""

    @app.post("/upload")
    async def upload() -> str:
        return str(len(await request.get_data()))

    limits = Limits(body_first_byte=0.05, max_header_bytes=2048)
    config, listener = HostConfig(new_request_id, limits), bind("127.0.0.1", 0)
    path = tmp_path / "access.log"
    front = fronted(app, config, access_log=str(path), forwarded_allow_ips=("127.0.0.1",))
    with front as whole:
        async with (
            serving_on(whole, [listener], config),
            httpx.AsyncClient(http1=not http2, http2=http2, base_url=listener.url) as client,
        ):
            told = {"x-forwarded-for": "192.0.2.7", "x-request-id": "mine"}
            reader = await client.get("/hi/a", headers={**told, "x": "y" * 2048})
            assert reader.status_code == 431
            body = await late(listener, http2)
    kept = ("client", "method", "path", "status", "bytes")
    first, second = lines(path)
    assert first["id"] == "mine"
    assert second["id"] is not None
    assert [tuple(line[name] for name in kept) for line in (first, second)] == [
        ("192.0.2.7", "GET", "/hi/a", 431, len(reader.content)),
        ("127.0.0.1", "POST", "/upload", 408, len(body)),
    ]


async def late(listener: Listener, http2: bool) -> bytes:
    """The answer's body to one that does not come."""
    if not http2:
        async with H1Client.open(listener) as client:
            await client.send(b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n")
            return (await client.rest()).partition(b"\r\n\r\n")[2]
    async with H2Client.open(listener) as h2:
        stream = await h2.request("/upload", "POST", end=False)
        await h2.until_reset(stream)
        return h2.body(stream)


@attrs.define
class Sink:
    """Takes frames while there is room."""

    room: int
    started: tuple[Any, ...] | None = None
    queued: int = 0

    async def start(self, status: int, headers: Any) -> None:
        self.started = (status, list(headers))

    def offer(self, data: bytes) -> bool:
        if self.queued + len(data) > self.room:
            return False
        self.queued += len(data)
        return True


async def test_frames_that_are_offered_count_when_they_are_taken() -> None:
    sink, told = Sink(room=10), list[Entry]()
    headers = [(b"X-Request-Id", b"mine")]

    async def streams(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        mine: Any = scope["extensions"][FRAMES]  # type: ignore[typeddict-item]
        await mine.start(200, iter(headers))
        assert [mine.offer(b"123456") for _ in range(2)] == [True, False]
        assert mine.queued == 6

    scope: Any = {
        "type": "http", "client": None, "method": "POST", "raw_path": b"/x",
        "extensions": {FRAMES: sink},
    }  # fmt: skip
    unused: Any = None
    await AccessLog(streams, told.append)(scope, unused, unused)
    assert sink.started == (200, headers)
    assert (told[0].id, told[0].status, told[0].bytes) == ("mine", 200, 6)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_is_a_json_object_and_a_moved_file_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    with writing(str(path), Counted()) as write:
        write(attrs.evolve(ENTRY, path='/a"\n\x1b', seconds=0.25))
        until_written(path, 1)
        path.rename(tmp_path / "access.log.1")
        write(ENTRY)
    (first,) = lines(tmp_path / "access.log.1")
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "client": "192.0.2.7", "id": None, "method": "GET", "path": '/a"\n\x1b',
        "status": 200, "bytes": 0, "seconds": 0.25,
    }  # fmt: skip
    assert len(lines(path)) == 1


def until_written(path: Path, count: int) -> None:
    until(lambda: path.exists() and len(path.read_text().splitlines()) >= count)


def until(is_so: Callable[[], bool]) -> None:
    turn = threading.Event()
    while not is_so():
        turn.wait(0.001)


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    with writing("-", Counted()) as write:
        write(ENTRY)
    assert json.loads(capfd.readouterr().out)["path"] == "/x"


def test_a_folder_that_is_away_for_a_while_costs_the_lines_of_that_time(tmp_path: Path) -> None:
    folder, counted = tmp_path / "logs", Counted()
    path = folder / "access.log"
    folder.mkdir()
    with writing(str(path), counted) as write:
        write(ENTRY)
        until_written(path, 1)
        folder.rename(tmp_path / "away")
        write(ENTRY)
        until(lambda: counted.access_lines_lost == 1)
        folder.mkdir()
        write(ENTRY)
    assert (len(lines(path)), counted.access_lines_lost) == (1, 1)


def test_an_end_does_not_wait_for_a_reader_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_lines, "LAST_LINES_S", 0.01)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with writing(str(pipe), Counted()) as write:
        write(attrs.evolve(ENTRY, path="/" + "x" * 1_000_000))
    os.close(reader)  # The thread ends with that.


def test_a_pipe_without_a_reader_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StartupError, match="nobody reads the pipe"), writing(str(pipe), Counted()):
        pass


def test_a_line_that_was_torn_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full in the midst of a line."""
    path, counted, write_fully = tmp_path / "access.log", Counted(), os.write
    room = [10, 0]

    def short(number: int, data: memoryview) -> int:
        # Other threads may write to other files meanwhile.
        if not os.path.samestat(os.fstat(number), path.stat()):
            return write_fully(number, data)
        if room and not (size := room.pop(0)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_fully(number, data[:size] if room else data)

    monkeypatch.setattr(os, "write", short)
    with writing(str(path), counted) as write:
        write(ENTRY)
        write(ENTRY)
    torn, whole = path.read_text().splitlines()
    assert (len(torn), json.loads(whole)["path"], counted.access_lines_lost) == (10, "/x", 1)


def test_a_disk_that_hangs_costs_lines_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is a pipe that nobody reads: the thread that writes hangs in its first line."""
    monkeypatch.setattr(access_lines, "MOST_WAITING", 3)
    pipe, counted = tmp_path / "pipe", Counted()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with writing(str(pipe), counted) as write:
        write(attrs.evolve(ENTRY, path="/" + "x" * 1_000_000))
        for _ in range(5):
            write(ENTRY)
        assert counted.access_lines_lost >= 2
        os.set_blocking(reader, True)
        with os.fdopen(reader) as read:
            for _ in range(6 - counted.access_lines_lost):
                assert json.loads(read.readline())["status"] == 200


def test_what_cannot_be_written_is_counted(tmp_path: Path) -> None:
    counted = Counted()
    with writing("/dev/full", counted) as write:
        write(ENTRY)
    assert counted.access_lines_lost == 1


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    refused = pytest.raises(StartupError, match="Cannot write the access log")
    with refused as caught, writing(str(tmp_path), Counted()):
        pass
    assert "\n" not in str(caught.value)
