"""Answers that come before the request's body has: over real sockets, they can all be read."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
from anyio import to_thread
from h2.errors import ErrorCodes
from h2.events import InformationalResponseReceived
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Quart, Response, request

from antiphon.transport.limits import Limits
from antiphon.transport.listener import Listener
from transport.hosting import GUARD_S, H1Client, H2Client, Tracker, quart_app, serving

HEAD_END = b"\r\n\r\n"
LIMIT = 16 * 2**20
SIZES = (60_000, 2**20, 17 * 2**20)
CURL = shutil.which("curl") or ""


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def app(tracker: Tracker) -> Quart:
    app = quart_app()
    app.config["MAX_CONTENT_LENGTH"] = LIMIT

    @app.get("/hi")
    async def hi() -> str:
        return "hi"

    @app.get("/waiting")
    async def waiting() -> str:
        with tracker:
            await anyio.sleep_forever()
        return "never"

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 401

    @app.post("/breaks")
    async def breaks() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            raise ValueError("in the middle")

        return Response(body())

    @app.post("/size")
    async def size() -> str:
        return str(len(await request.body))

    @app.post("/pieces")
    async def pieces() -> str:
        return str(sum([len(piece) async for piece in request.body]))

    return app


def post(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


async def in_pieces(size: int) -> AsyncIterator[bytes]:
    for at in range(0, size, 2**16):
        yield bytes(min(2**16, size - at))


@pytest.mark.parametrize("http2", [True, False])
@pytest.mark.parametrize("size", SIZES)
async def test_httpx_reads_them(app: Quart, http2: bool, size: int) -> None:
    async with (
        serving(app) as listener,
        httpx.AsyncClient(
            base_url=listener.url, http1=not http2, http2=http2, timeout=GUARD_S
        ) as client,
    ):
        for path, status in {"/early": 401, "/nowhere": 404}.items():
            for content in (bytes(size), in_pieces(size)):
                answer = await client.post(path, content=content)
                assert answer.status_code == status
                assert answer.content
        if size > LIMIT:
            assert (await client.post("/size", content=bytes(size))).status_code == 413
            assert (await client.post("/size", content=in_pieces(size))).status_code == 413
        assert (await client.get("/hi")).text == "hi"


@pytest.mark.skipif(not CURL, reason="there is no curl")
@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
@pytest.mark.parametrize("header", ["Expect:", "Expect: 100-continue"])
async def test_curl_reads_them(app: Quart, version: str, header: str, tmp_path: Path) -> None:
    async with serving(app) as listener:
        for size in SIZES:
            body = tmp_path / "body"
            body.write_bytes(bytes(size))
            expected = {"/early": "401", "/nowhere": "404", "/size": "413"}
            if size <= LIMIT:
                expected["/size"] = "200"
            for path, status in expected.items():
                process = await asyncio.create_subprocess_exec(
                    CURL,
                    *("-sS", version, "-H", header, "--data-binary", f"@{body}"),
                    *("-o", str(tmp_path / "answer"), "-w", "%{http_code}"),
                    f"{listener.url}{path}",
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                said, _ = await process.communicate()
                assert said.decode() == status
                assert (tmp_path / "answer").read_bytes()


@pytest.mark.parametrize("declared", [True, False])
async def test_http2_takes_the_whole_body_after_its_answer(
    app: Quart, tracker: Tracker, declared: bool
) -> None:
    size = 300_000
    length = [("content-length", str(size))] if declared else []
    async with serving(app) as listener, H2Client.open(listener) as client:
        neighbour = await client.request("/waiting")
        uploads = [client.queue("/early", "POST", end=False, headers=length) for _ in range(3)]
        await client.flush()
        await client.until_ended(*uploads)
        for upload in uploads:
            assert (client.status(upload), client.body(upload)) == ("401", b"no")
            await client.upload(upload, bytes(size))
            assert await client.get("/hi") == b"hi"
            assert client.reset(upload) is None
        assert client.reset(neighbour) is None
        assert tracker.live == 1
        assert not client.goaways


@pytest.mark.parametrize("limit", ["UNREAD_BODY", "UNREAD_TOTAL"])
async def test_http2_takes_no_more_than_its_limit(
    app: Quart, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Of one stream, and of all that are open."""
    monkeypatch.setattr(f"antiphon.transport.unread.{limit}", 90_000)
    first = 60_000 if limit == "UNREAD_TOTAL" else 0
    async with serving(app) as listener, H2Client.open(listener) as client:
        other = await client.request("/early", "POST", end=False)
        upload = await client.request("/early", "POST", end=False)
        await client.until_ended(other, upload)
        await client.upload(other, bytes(first), end=False)
        await client.upload(upload, bytes(90_000 - first), end=False)
        assert await client.get("/hi") == b"hi"
        assert client.reset(upload) is None
        await client.upload(upload, b"x", end=False)
        await client.until_reset(upload)
        assert client.reset(upload) == ErrorCodes.NO_ERROR
        await client.upload(other, b"x")
        assert await client.get("/hi") == b"hi"
        assert client.reset(other) is None


async def test_http2_counts_only_bodies_that_have_not_ended(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.unread.UNREAD_TOTAL", 90_000)
    async with serving(app) as listener, H2Client.open(listener) as client:
        for number in range(5):
            upload = await client.request("/early", "POST", end=False)
            await client.until_ended(upload)
            await client.upload(upload, bytes(80_000), end=number % 2 == 0)
            if number % 2:
                client.h2.reset_stream(upload, ErrorCodes.CANCEL)
            assert await client.get("/hi") == b"hi"
            assert client.reset(upload) is None


async def test_http2_gives_the_room_of_a_forgotten_body_to_a_new_stream(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    five = Limits(h2_max_concurrent_streams=5)
    async with serving(app, limits=five) as listener, H2Client.open(listener) as client:
        await client.read_until(lambda: bool(client.seen))
        uploads = [await client.request("/early", "POST", end=False) for _ in range(4)]
        await client.until_ended(*uploads)
        await client.request("/waiting")
        stream = client.h2.get_next_available_stream_id()
        monkeypatch.setattr(
            type(client.h2.remote_settings), "max_concurrent_streams", 100, raising=True
        )
        assert await client.get("/hi") == b"hi"
        assert client.reset(stream) is None
        assert [client.reset(each) for each in uploads] == [ErrorCodes.NO_ERROR, None, None, None]


async def test_http2_ends_a_body_that_comes_to_a_halt(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.unread.QUIET_S", 0.01)
    async with serving(app) as listener, H2Client.open(listener) as client:
        upload = await client.request("/early", "POST", end=False)
        await client.until_reset(upload)
        assert client.reset(upload) == ErrorCodes.NO_ERROR
        assert (client.status(upload), client.body(upload)) == ("401", b"no")
        assert await client.get("/hi") == b"hi"


async def test_http2_ends_a_body_that_takes_too_long(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.unread.QUIET_S", 0.01)
    monkeypatch.setattr("antiphon.transport.unread.DROPPING_S", 0.05)
    async with serving(app) as listener, H2Client.open(listener) as client:
        upload = await client.request("/early", "POST", end=False)
        await client.until_ended(upload)
        with anyio.fail_after(GUARD_S):
            while client.reset(upload) is None:
                await client.upload(upload, b"x", end=False)
                assert await client.get("/hi") == b"hi"
        assert client.reset(upload) == ErrorCodes.NO_ERROR
        assert not client.goaways


async def test_http2_forgives_a_body_that_ends_too_soon(app: Quart) -> None:
    """A client that has read its answer has no reason to send what it promised."""
    async with serving(app) as listener, H2Client.open(listener) as client:
        length = [("content-length", "1000")]
        upload = client.queue("/early", "POST", end=False, headers=length)
        await client.flush()
        await client.until_ended(upload)
        await client.upload(upload, b"short")
        assert await client.get("/hi") == b"hi"
        assert not client.goaways


@pytest.mark.parametrize("path", ["/size", "/pieces"])
async def test_http2_asks_for_a_body_that_is_wanted(app: Quart, path: str) -> None:
    expect = [("expect", "100-Continue")]
    async with serving(app) as listener, H2Client.open(listener) as client:
        upload = client.queue(path, "POST", end=False, headers=expect)
        await client.flush()
        await client.read_until(lambda: bool(client.of(InformationalResponseReceived, upload)))
        assert client.status(upload) is None
        await client.upload(upload, b"body")
        await client.until_ended(upload)
        assert client.body(upload) == b"4"
        assert len(client.of(InformationalResponseReceived)) == 1
        bare = client.queue(path, "POST", headers=expect)
        await client.flush()
        await client.until_ended(bare)
        assert client.body(bare) == b"0"
        assert not client.of(InformationalResponseReceived, bare)


@pytest.mark.parametrize(
    ("path", "status"), [("/early", 401), ("/nowhere", 404), ("/size", 413), ("/pieces", 413)]
)
async def test_no_protocol_asks_for_a_body_that_is_refused(
    app: Quart, path: str, status: int
) -> None:
    expect = [("content-length", str(LIMIT + 1)), ("expect", "100-continue")]
    async with serving(app) as listener:
        async with H2Client.open(listener) as client:
            upload = client.queue(path, "POST", end=False, headers=expect)
            await client.flush()
            await client.until_ended(upload)
            assert client.status(upload) == str(status)
            assert not client.of(InformationalResponseReceived)
        async with H1Client.open(listener) as plain:
            await plain.send(post(path, *[f"{name}: {value}" for name, value in expect]))
            head = await plain.until(HEAD_END)
            assert head.startswith(b"HTTP/1.1 %d " % status)
            assert head.count(b"connection: close\r\n") == 1


@pytest.mark.parametrize("path", ["/size", "/pieces"])
async def test_http1_asks_for_a_body_that_is_wanted(app: Quart, path: str) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        for body in (b"body", b"another"):
            await client.send(post(path, f"Content-Length: {len(body)}", "Expect: 100-continue"))
            assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 100 Continue\r\n")
            await client.send(body)
            assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 200 OK\r\n")
            assert await client.until(b"%d" % len(body)) == b"%d" % len(body)


async def test_a_client_that_leaves_before_it_is_asked_is_noticed(
    app: Quart, tracker: Tracker
) -> None:
    async with serving(app) as listener:
        async with H1Client.open(listener) as client:
            await client.send(b"GET /waiting HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n")
            await tracker.until(lambda it: it.live == 1)
        await tracker.until(lambda it: it.left == 1)


async def test_what_follows_a_refused_expectation_is_never_taken_for_a_request(
    app: Quart,
) -> None:
    """Whether it is the body or the next request, nobody can tell."""
    inner = b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/early", f"Content-Length: {len(inner)}", "Expect: 100-continue"))
        await client.until(b"no")
        await client.send(inner * 3)
        assert await client.rest() == b""


def send_all_then_read(listener: Listener, data: bytes, late: bytes = b"") -> bytes:
    """What the simplest of clients reads. It sends ``late`` once the answer begins."""
    with socket.create_connection(("127.0.0.1", listener.port), timeout=GUARD_S) as sock:
        # Small, so that most of it can only be sent when the server takes it.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
        sock.sendall(data)
        answer = sock.recv(2**16)
        sock.sendall(late)
        while more := sock.recv(2**16):
            answer += more
        return answer


BIG = 2**23


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(
            post("/early", f"Content-Length: {10**12}") + bytes(BIG), b"401", id="too long to keep"
        ),
        pytest.param(
            post("/early", f"Content-Length: {BIG}", "Connection: close") + bytes(BIG),
            b"401",
            id="the last one",
        ),
        pytest.param(
            post("/early", f"Content-Length: {BIG}", "Connection: close")
            + bytes(BIG)
            + post("/early", f"Content-Length: {BIG}")
            + bytes(BIG),
            b"401",
            id="the last one, and another",
        ),
        pytest.param(
            post("/early", "Transfer-Encoding: chunked") + b"nonsense\r\n" + bytes(BIG),
            b"40",
            id="broken chunks",
        ),
        pytest.param(b"no HTTP\r\n\r\n" + bytes(BIG), b"400", id="no HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\nx: " + b"x" * BIG, b"431", id="endless headers"),
    ],
)
async def test_http1_lets_the_last_answer_be_read(app: Quart, data: bytes, status: bytes) -> None:
    async with serving(app) as listener:
        answer = await to_thread.run_sync(send_all_then_read, listener, data)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.count(b"HTTP/1.1") == 1


async def test_http1_drops_a_body_that_comes_though_it_was_refused(app: Quart) -> None:
    head = post("/early", f"Content-Length: {BIG}", "Expect: 100-continue")
    async with serving(app) as listener:
        answer = await to_thread.run_sync(send_all_then_read, listener, head, bytes(BIG))
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert answer.endswith(b"no")


async def test_http1_waits_no_longer_than_it_says(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a body that was to be dropped and comes to a halt, whatever the answer said of it."""
    monkeypatch.setattr("antiphon.transport.connection.QUIET_S", 0.01)
    async with serving(app) as listener:
        for length in (1000, 10**12):
            async with H1Client.open(listener) as client:
                await client.send(post("/early", f"Content-Length: {length}"))
                await client.until(b"no")
                assert await client.rest() == b""


async def test_http1_drops_no_longer_than_its_limit(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However lively the body is, and whatever the answer said; each body has its own time."""
    async with serving(app) as listener:
        for length in (10**7, 10**12):
            async with H1Client.open(listener) as client:
                monkeypatch.setattr("antiphon.transport.connection.DROPPING_S", 9 * GUARD_S)
                await client.send(post("/early", "Content-Length: 5"))
                await client.until(b"no")
                await client.send(b"first")
                monkeypatch.setattr("antiphon.transport.connection.DROPPING_S", 0.02)
                await client.send(post("/early", f"Content-Length: {length}"))
                await client.until(b"no")
                with anyio.fail_after(GUARD_S), contextlib.suppress(ConnectionError):
                    while length == 10**12 or not client.reader.at_eof():
                        await client.send(b"x")
                        await asyncio.sleep(0)


async def test_http1_drops_no_more_than_its_limit(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.http1.UNREAD_BODY", 1000)
    async with serving(app) as listener:
        with pytest.raises(ConnectionError):
            await to_thread.run_sync(
                send_all_then_read, listener, post("/early", f"Content-Length: {BIG}") + bytes(BIG)
            )


async def test_http1_goes_on_after_a_dropped_body_in_chunks(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/early", "Transfer-Encoding: chunked") + b"10000\r\n")
        assert b"connection: close" not in await client.until(HEAD_END)
        await client.until(b"no")
        await client.send(bytes(0x10000) + b"\r\n0\r\n\r\n" + post("/size", "Content-Length: 0"))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("rest", [b"0123456789", b"01234"])
async def test_http1_refuses_a_client_that_has_ended_for_sending(app: Quart, rest: bytes) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        client.writer.write(post("/early", "Content-Length: 10") + rest)
        client.writer.write_eof()
        assert (await client.rest()).startswith(b"HTTP/1.1 401 ")


TINY = 3000
"""Pieces of one byte: far more than wait for any application."""


async def answers_alone(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """An application that never receives, and answers when its inbox is full."""
    if scope["type"] == "lifespan":
        raise NotImplementedError
    for _ in range(100):
        await asyncio.sleep(0)
    head = [(b"content-length", b"2"), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 401, "headers": head, "trailers": False})
    await send({"type": "http.response.body", "body": b"no", "more_body": False})


async def test_an_answer_that_breaks_off_under_a_body_halts_no_neighbour(app: Quart) -> None:
    async with serving(app) as listener, H2Client.open(listener) as client:
        upload = client.queue("/breaks", "POST", end=False)
        for _ in range(TINY):
            client.h2.send_data(upload, b"x")
        await client.flush()
        assert await client.get("/hi") == b"hi"
        await client.until_reset(upload)
        assert client.reset(upload) == ErrorCodes.INTERNAL_ERROR


async def test_an_application_that_only_answers_halts_no_connection() -> None:
    async with serving(answers_alone) as listener:
        async with H2Client.open(listener) as client:
            upload = client.queue("/", "POST", end=False)
            for _ in range(TINY):
                client.h2.send_data(upload, b"x")
            await client.flush()
            assert await client.get("/") == b"no"
            assert client.body(upload) == b"no"
        async with H1Client.open(listener) as plain:
            for _ in range(2):
                await plain.send(post("/", "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * TINY)
                await plain.until(b"no")
                await plain.send(b"0\r\n\r\n")
