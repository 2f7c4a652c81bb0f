"""HTTP/1.1 over real sockets: pipelining, leaving, early answers, broken answers."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import pytest
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart import Quart, Response, request

from antiphon.transport.settings import UNREAD_BODY
from transport.hosting import OWN_ID, H1Client, Tracker, quart_app, serving

HEAD_END = b"\r\n\r\n"


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


@pytest.fixture
def app(tracker: Tracker) -> Quart:
    app = quart_app()

    @app.get("/hi/<name>")
    async def hi(name: str) -> str:
        return name

    @app.get("/silent")
    async def silent() -> str:
        with tracker:
            await tracker.until(lambda _: False)
        return "never"

    @app.post("/early")
    async def early() -> tuple[str, int]:
        return "no", 400

    @app.post("/echo")
    async def echo() -> str | bytes:
        return await request.get_data(as_text=False)

    @app.get("/breaks")
    async def breaks() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"first"
            raise ValueError("in the middle")

        return Response(body())

    @app.get("/odd")
    async def odd() -> tuple[str, int]:
        return "", 299

    return app


def get(path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: x", *headers, "", ""]
    return "\r\n".join(lines).encode()


def post(path: str, length: int, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {length}", *headers, "", ""]
    return "\r\n".join(lines).encode()


async def test_the_status_line_has_its_reason(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(get("/hi/you"))
        head = await client.until(HEAD_END)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"server: antiphon\r\n" in head
        await client.until(b"you")
        await client.send(get("/nowhere"))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 404 Not Found\r\n")


async def test_a_status_without_a_name_has_no_reason(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(get("/odd"))
        assert (await client.until(b"\r\n")) == b"HTTP/1.1 299 \r\n"


async def test_pipelined_requests_are_answered_in_order(app: Quart) -> None:
    names = [f"n{number}" for number in range(20)]
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(b"".join(get(f"/hi/{name}") for name in names))
        for name in names:
            await client.until(HEAD_END)
            assert (await client.until(name.encode())) == name.encode()


async def test_a_client_that_leaves_behind_a_second_request_is_noticed(
    app: Quart, tracker: Tracker
) -> None:
    async with serving(app) as listener:
        async with H1Client.open(listener) as client:
            await client.send(get("/silent"))
            await tracker.until(lambda it: it.live == 1)
            await client.send(get("/hi/too-late"))
        await tracker.until(lambda it: it.left == 1)


async def test_a_client_that_leaves_is_noticed(app: Quart, tracker: Tracker) -> None:
    async with serving(app) as listener:
        async with H1Client.open(listener) as client:
            await client.send(get("/silent"))
            await tracker.until(lambda it: it.live == 1)
        await tracker.until(lambda it: it.left == 1)


async def test_an_early_answer_keeps_the_connection_for_the_next_request(
    app: Quart, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/early", 100_000) + b"x" * 1000)
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        await client.until(b"no")
        await client.send(b"x" * 99_000 + get("/hi/again"))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await client.until(b"again") == b"again"
    assert not caplog.records


async def test_a_body_that_never_ends_costs_the_connection(
    app: Quart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.http1.UNREAD_BODY", 1000)
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/early", 10**9))
        await client.until(b"no")
        await client.send(b"x" * 1001)
        assert await client.rest() == b""


async def test_more_read_ahead_than_its_limit_waits_and_is_served(
    app: Quart, tracker: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.transport.http1.READ_AHEAD", 100)
    names = [f"n{number}" for number in range(50)]
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(b"".join(get(f"/hi/{name}") for name in names))
        for name in names:
            await client.until(HEAD_END)
            assert (await client.until(name.encode())) == name.encode()


async def test_uploads_arrive_whole(app: Quart) -> None:
    body = bytes(range(256)) * 2000
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/echo", len(body), "Connection: close") + body)
        await client.until(HEAD_END)
        assert await client.rest() == body


async def test_expect_continue(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/echo", 2, "Expect: 100-continue"))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 100 Continue\r\n")
        await client.send(b"ok")
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await client.until(b"ok") == b"ok"


async def test_a_broken_answer_ends_without_its_last_chunk(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(get("/breaks"))
        await client.until(HEAD_END)
        assert await client.rest() == b"5\r\nfirst\r\n"


async def test_http_1_0_is_answered_and_closed(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(b"GET /hi/old HTTP/1.0\r\n\r\n")
        assert (await client.rest()).endswith(b"old")


async def test_nonsense_is_a_400_and_the_end(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(b"no request at all\r\n\r\n")
        assert (await client.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("settings", [None, "", "AAMAAABkAAQCAAAAAAIAAAAA"])
async def test_an_upgrade_with_sound_settings_is_http2(app: Quart, settings: str | None) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        extra = [] if settings is None else [f"HTTP2-Settings: {settings}"]
        connection = "Connection: Upgrade, HTTP2-Settings"
        await client.send(get("/hi/up", "Upgrade: h2c", connection, *extra))
        head = await client.until(HEAD_END)
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param("A", id="no base64"),
        pytest.param(base64.urlsafe_b64encode(b"12345").decode(), id="half a setting"),
        pytest.param("AAT_____", id="a window above 2^31-1"),
        pytest.param("AAIAAAAH", id="push that is neither on nor off"),
        pytest.param("AAUAAAAB", id="frames of a byte"),
        pytest.param("AAMAAABkAAUAAAAB", id="the second of two"),
    ],
)
async def test_an_upgrade_with_broken_settings_stays_http1(
    app: Quart, settings: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        extra = ["Connection: Upgrade, HTTP2-Settings", f"HTTP2-Settings: {settings}"]
        await client.send(get("/hi/down", "Upgrade: h2c", *extra))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await client.until(b"down") == b"down"
    assert not caplog.records


@pytest.mark.parametrize("asked", [True, False])
async def test_a_client_that_has_gone_leaves_no_task_behind(app: Quart, asked: bool) -> None:
    async with serving(app) as listener:
        async with H1Client.open(listener) as first:
            await first.send(get("/hi/you"))
            await first.until(b"you")
        before = await fewest_tasks()
        for _ in range(20):
            async with H1Client.open(listener) as client:
                if asked:
                    await client.send(get("/hi/you"))
                    await client.until(b"you")
        assert await fewest_tasks() <= before


async def fewest_tasks() -> int:
    """How few tasks are left once what has ended has had its turns to go."""
    fewest = len(asyncio.all_tasks())
    for _ in range(200):
        await asyncio.sleep(0)
        fewest = min(fewest, len(asyncio.all_tasks()))
    return fewest


@pytest.mark.parametrize(
    "request_head",
    [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"],
)
async def test_what_is_no_http_gets_the_error_object(app: Quart, request_head: bytes) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(request_head)
        answer = await client.rest()
        head, _, body = answer.partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert f"x-request-id: {OWN_ID}\r\n".encode() in head
        assert json.loads(body)["error"]["type"] == "invalid_request_error"


async def test_a_target_without_a_path_is_the_root(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(get("?x"))
        assert (await client.until(HEAD_END)).startswith(b"HTTP/1.1 404 Not Found\r\n")


@pytest.mark.parametrize(("length", "kept"), [(UNREAD_BODY, True), (UNREAD_BODY + 1, False)])
async def test_an_early_answer_says_whether_the_connection_is_kept(
    app: Quart, length: int, kept: bool
) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(post("/early", length))
        head = await client.until(HEAD_END)
        assert head.startswith(b"HTTP/1.1 400 ")
        assert (b"connection: close" not in head) is kept


async def test_headers_that_do_not_end_are_a_431(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(b"GET /hi/you HTTP/1.1\r\nHost: x\r\nx-long: " + b"x" * 100_000)
        head, _, body = (await client.rest()).partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert f"x-request-id: {OWN_ID}\r\n".encode() in head
        assert json.loads(body)["error"]["code"] == "headers_too_large"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_an_application_that_does_not_answer_is_an_error_object(method: str) -> None:
    async def silent(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] == "lifespan":
            raise NotImplementedError

    async with serving(silent) as listener, H1Client.open(listener) as client:
        await client.send(get("/").replace(b"GET", method.encode()))
        head, _, body = (await client.rest()).partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert f"x-request-id: {OWN_ID}\r\n".encode() in head
        if method == "GET":
            assert json.loads(body)["error"]["code"] == "internal_error"
        else:
            assert body == b""


async def test_a_handshake_that_is_none_is_an_error_object(app: Quart) -> None:
    async with serving(app) as listener, H1Client.open(listener) as client:
        await client.send(get("/", "Upgrade: websocket", "Connection: Upgrade"))
        head, _, body = (await client.rest()).partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert f"x-request-id: {OWN_ID}\r\n".encode() in head
        assert json.loads(body)["error"]["code"] == "invalid_http"
