"""The Quart side: nothing outlives its request, and event streams have no time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import anyio
import attrs
import pytest
from h2.events import ResponseReceived
from hypercorn.typing import ASGIReceiveEvent, ASGISendEvent, HTTPScope
from quart import Quart, Response, ResponseReturnValue

from antiphon.transport.quart_host import EventStreamResponse
from transport.hosting import GUARD_S, H1Client, H2Client, Tracker, quart_app, serving


@attrs.define
class Source:
    """An event source that counts its closings."""

    events: list[bytes]
    endless: bool = False
    closed: int = 0
    whenever_closed: anyio.Event = attrs.field(factory=anyio.Event)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self.events:
            yield event
        if self.endless:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        self.closed += 1
        self.whenever_closed.set()


def app_with(view: Callable[[], ResponseReturnValue], **config: object) -> Quart:
    app = quart_app()
    app.config.update(config)

    async def route() -> ResponseReturnValue:
        return view()

    app.add_url_rule("/", view_func=route)
    return app


@pytest.mark.wire("F9")
async def test_an_event_stream_says_what_it_is() -> None:
    app = app_with(lambda: EventStreamResponse(Source([b"data: 1\n\n"]), {"x-request-id": "r1"}))
    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/")
        await client.read_until(lambda: client.ended(stream))
        (response,) = client.of(ResponseReceived, stream)
        headers = {bytes(name).decode(): bytes(value).decode() for name, value in response.headers}
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-request-id"] == "r1"
    assert "content-length" not in headers


async def test_the_same_bytes_over_sockets_and_over_plain_asgi() -> None:
    events = [f"data: {number}\n\n".encode() for number in range(100)]
    app = app_with(lambda: EventStreamResponse(Source(events)))
    plain = await (await app.test_client().get("/")).get_data(as_text=False)
    async with serving(app) as listener:
        async with H2Client.open(listener) as client:
            assert await client.get("/") == plain == b"".join(events)
        async with H1Client.open(listener) as client_1:
            await client_1.send(b"GET / HTTP/1.0\r\n\r\n")
            assert (await client_1.rest()).endswith(b"\r\n\r\n" + plain)


async def test_a_source_is_closed_when_its_stream_ends() -> None:
    source = Source([b"data: 1\n\n"])
    app = app_with(lambda: EventStreamResponse(source))
    async with serving(app) as listener, H2Client.open(listener) as client:
        await client.get("/")
        with anyio.fail_after(GUARD_S):
            await source.whenever_closed.wait()


async def test_a_source_is_closed_when_its_client_leaves() -> None:
    source = Source([b"data: 1\n\n"], endless=True)
    async with serving(app_with(lambda: EventStreamResponse(source))) as listener:
        async with H2Client.open(listener) as client:
            stream = await client.request("/")
            await client.read_until(lambda: bool(client.body(stream)))
            assert not source.closed
        with anyio.fail_after(GUARD_S):
            await source.whenever_closed.wait()


async def test_a_source_that_was_never_read_is_closed() -> None:
    """A failure between the view's return and the first byte must not forget the run."""
    source = Source([b"data: 1\n\n"])
    app = app_with(lambda: EventStreamResponse(source))

    @app.after_request
    async def fail(response: Response) -> Response:
        raise ValueError("after the view")

    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/")
        await client.read_until(lambda: client.ended(stream))
        assert client.status(stream) == "500"
        with anyio.fail_after(GUARD_S):
            await source.whenever_closed.wait()


SCOPE: HTTPScope = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.1"},
    "http_version": "2",
    "method": "GET",
    "scheme": "http",
    "path": "/",
    "raw_path": b"/",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"x")],
    "client": None,
    "server": None,
    "state": {},  # type: ignore[typeddict-item]  # an empty mapping is one
    "extensions": {},
}


async def test_cancelling_the_asgi_call_ends_and_awaits_both_inner_tasks() -> None:
    tracker = Tracker()
    app = quart_app()

    @app.get("/")
    async def view() -> str:
        with tracker:
            try:
                await anyio.sleep_forever()
            finally:
                await anyio.lowlevel.checkpoint_if_cancelled()
                await asyncio.sleep(0)  # cleaning up takes a while, and is waited for
        return "never"

    async def receive() -> ASGIReceiveEvent:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(_: ASGISendEvent) -> None: ...

    before = asyncio.all_tasks()
    call = asyncio.ensure_future(app(SCOPE, receive, send))
    await tracker.until(lambda it: it.live == 1)
    call.cancel()
    with anyio.fail_after(GUARD_S), pytest.raises(asyncio.CancelledError):
        await call
    assert tracker.live == 0
    assert asyncio.all_tasks() == before


def streamed(content_type: str) -> Response:
    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        # Any time limit that applies has long passed when so many turns have.
        for _ in range(200):
            await asyncio.sleep(0)
        yield b" last"

    return Response(body(), content_type=content_type)


async def test_event_streams_have_no_response_timeout() -> None:
    app = app_with(lambda: streamed("text/event-stream"), RESPONSE_TIMEOUT=1e-9)
    async with serving(app) as listener, H2Client.open(listener) as client:
        assert await client.get("/") == b"first last"


async def test_other_responses_have_one_and_a_cut_is_a_reset() -> None:
    app = app_with(lambda: streamed("text/plain"), RESPONSE_TIMEOUT=1e-9)
    async with serving(app) as listener, H2Client.open(listener) as client:
        stream = await client.request("/")
        await client.read_until(lambda: client.reset(stream) is not None or client.ended(stream))
        assert not client.ended(stream)


async def test_a_response_may_choose_its_own_timeout() -> None:
    def view() -> Response:
        response = streamed("text/plain")
        response.timeout = None
        return response

    app = app_with(view, RESPONSE_TIMEOUT=1e-9)
    async with serving(app) as listener, H2Client.open(listener) as client:
        assert await client.get("/") == b"first last"
