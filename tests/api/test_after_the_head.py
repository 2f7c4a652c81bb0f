"""What goes wrong after the engine took a request: how its stream ends, what its body becomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import attrs
import httpx
import pytest

from antiphon.engines.port import EngineError, Finish
from api.hosted import BODIES, CHAT, COMPLETIONS, PROTOCOLS, RESPONSES, Hosted, hosted
from api.sse import events
from api.test_error_table import RETRY, error_of
from transport.hosting import GUARD_S


@attrs.frozen(kw_only=True)
class Fault:
    """Something that happens to an answer of which "one " has been said."""

    happens: Callable[[Hosted], Awaitable[object]]
    says: str
    status: int
    code: str
    retry: dict[str, str] = attrs.field(factory=dict)
    server: dict[str, Any] = attrs.field(factory=dict)


async def fails(host: Hosted) -> None:
    error = EngineError(code="engine_failed", message="/dev/gpu0 fell off at 0xdeadbeef")
    host.engine.end(host.engine.requests[0].key, Finish.ERROR, error)


async def dies(host: Hosted) -> None:
    host.engine.die()


async def waits(host: Hosted) -> None:
    """Nothing more comes."""


async def ends(host: Hosted) -> None:
    await host.service.fanout.drain(0)


async def trips(host: Hosted) -> None:
    """The machine refuses a move: a second acceptance."""
    _, choice = host.service.fanout._open[host.engine.requests[0].key]
    choice.accepted = False
    host.engine.say(choice.key, b"two")


NEVER = {"x-should-retry": "false"}
FAULTS = {
    "engine-error": Fault(
        happens=fails, says="engine stopped", status=500, code="server_error", retry=NEVER
    ),
    "engine-lost": Fault(
        happens=dies, says="engine stopped", status=500, code="server_error", retry=NEVER
    ),
    "deadline": Fault(
        happens=waits,
        says="time limit",
        status=504,
        code="timeout",
        server={"request_timeout": 0.05},
    ),
    "drain": Fault(
        happens=ends,
        says="shutting down",
        status=503,
        code="shutting_down",
        retry={"retry-after": "1", "retry-after-ms": "1000", "x-should-retry": "true"},
    ),
    "refused-transition": Fault(
        happens=trips, says="failed to process", status=500, code="internal_error", retry=NEVER
    ),
}


def assert_failed_response(data: bytes, says: str) -> None:
    """Close cascade, error, response.failed; numbers without a gap."""
    frames = events(data)[:-1]
    assert [kind for kind, _ in frames[-6:]] == [
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "error",
        "response.failed",
    ]
    assert [frame["sequence_number"] for _, frame in frames] == list(range(len(frames)))
    item = frames[-3][1]["item"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "one ")
    error, final = frames[-2][1], frames[-1][1]["response"]
    assert final["status"] == "failed"
    assert final["output"] == [item]
    assert final["usage"]["output_tokens"] == 4
    assert final["error"] == {"code": "server_error", "message": error["message"]}
    assert error["code"] == error["error"]["code"] == "server_error"
    assert says in error["message"]


def assert_error_chunk(data: bytes, says: str) -> None:
    """One error chunk, no finish reason, no usage chunk."""
    frames = [frame for _, frame in events(data)[:-1]]
    assert [list(frame) for frame in frames if "error" in frame] == [["error"]]
    assert list(frames[-1]["error"]) == ["message", "type", "param", "code"]
    assert frames[-1]["error"]["code"] == "server_error"
    assert says in frames[-1]["error"]["message"]
    for chunk in frames[:-1]:
        assert [choice["finish_reason"] for choice in chunk["choices"]] == [None]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_stream(fault: Fault, path: str, protocol: str) -> None:
    usage = {} if path == RESPONSES else {"stream_options": {"include_usage": True}}
    body = {**BODIES[path], **usage, "stream": True}
    async with hosted(**fault.server) as host, host.client(protocol) as client:
        async with client.stream("POST", path, json=body) as response:
            assert response.status_code == 200
            pieces = response.aiter_bytes()
            data = b""
            host.engine.say(host.engine.requests[0].key, b"one ")
            while b"one " not in data:
                data += await anext(pieces)
            await fault.happens(host)
            async for piece in pieces:
                data += piece
        (assert_failed_response if path == RESPONSES else assert_error_chunk)(data, fault.says)
        assert host.service.fanout.running == 0
        metrics = (await client.get("/metrics")).text
    assert f'antiphon_failed_responses_total{{code="{fault.code}"}} 1.0' in metrics


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_body(fault: Fault, path: str, protocol: str) -> None:
    answers: list[httpx.Response] = []
    async with hosted(**fault.server) as host, host.client(protocol) as client:

        async def ask() -> None:
            answers.append(await client.post(path, json=BODIES[path]))

        with anyio.fail_after(GUARD_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await host.engine.until(lambda: bool(host.engine.requests))
                host.engine.say(host.engine.requests[0].key, b"one ")
                await fault.happens(host)
    error = error_of(answers[0])
    assert (answers[0].status_code, error["code"]) == (fault.status, fault.code)
    assert error["type"] == "server_error"
    assert fault.says in error["message"]
    told = {name: answers[0].headers[name] for name in RETRY if name in answers[0].headers}
    assert told == fault.retry


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_siblings_fall_together(path: str) -> None:
    body = {**BODIES[path], "n": 3, "stream": True}
    async with (
        hosted() as host,
        host.client() as client,
        client.stream("POST", path, json=body) as response,
    ):
        await fails(host)
        data = await response.aread()
    assert_error_chunk(data, "engine stopped")
    _, *others = (request.key for request in host.engine.requests)
    assert set(host.engine.aborted) >= set(others)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
async def test_a_frame_that_cannot_be_rendered(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even then the stream ends as a failed one does, as far as it can still be told."""
    async with (
        hosted() as host,
        host.client() as client,
        client.stream("POST", path, json={**BODIES[path], "stream": True}) as response,
    ):
        ((run, _),) = host.service.fanout._open.values()
        host.engine.say(host.engine.requests[0].key, b"one ")
        pieces = response.aiter_bytes()
        data = b""
        while b"one " not in data:
            data += await anext(pieces)

        def breaks(*_: Any) -> None:
            raise ZeroDivisionError("/secret.py")

        monkeypatch.setattr(run.plan.answer.stream, "feed", breaks)
        host.engine.say(host.engine.requests[0].key, b"two")
        async for piece in pieces:
            data += piece
    frames = events(data)[:-1]
    assert host.engine.aborted == [host.engine.requests[0].key]
    if path == RESPONSES:
        assert [kind for kind, _ in frames[-2:]] == ["error", "response.failed"]
        assert [frame["sequence_number"] for _, frame in frames] == list(range(len(frames)))
        error, final = frames[-2][1], frames[-1][1]["response"]
        assert final["output"][0]["content"][0]["text"] == "one two"
        assert final["error"] == {"code": "server_error", "message": error["error"]["message"]}
        assert list(error) == ["type", "sequence_number", "code", "message", "param", "error"]
    else:
        assert_error_chunk(data, "failed to process")


async def test_the_time_limit_is_that_of_the_clock_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = 0
    async with hosted(request_timeout=100) as host, host.client() as client:
        fanout = host.service.fanout
        monkeypatch.setattr(fanout, "_monotonic_ns", lambda: now_ns)
        body = {**BODIES[CHAT], "stream": True}
        async with client.stream("POST", CHAT, json=body) as response:
            key = host.engine.requests[0].key
            assert fanout.running == 1
            now_ns = 99_999_999_999
            fanout.expire()
            assert fanout.running == 1
            now_ns = 100_000_000_000
            fanout.expire()
            assert fanout.running == 0
            assert host.engine.aborted == [key]
            assert_error_chunk(await response.aread(), "time limit")
