"""A server whose queue is full: what is refused, when, and what that costs."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import anyio
import httpx
import pytest

from antiphon.engines.port import EngineError, Finish
from api.hosted import BODIES, CHAT, COMPLETIONS, JSON, PROTOCOLS, RESPONSES, Hosted, hosted
from api.test_error_table import RETRY, error_of
from api.test_operations import of, scrape
from transport.hosting import GUARD_S, H1Client

RUNNING, WAITING = 8, 2
"""Of the engine of these tests, and of its queue."""
MOST = RUNNING + WAITING


async def fill(host: Hosted, client: httpx.AsyncClient, tasks: Any, count: int = MOST) -> None:
    """Calls that do not end, until ``count`` sequences are open."""

    async def ask(n: int) -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await client.post(CHAT, json={**BODIES[CHAT], "n": n})

    scopes: list[anyio.CancelScope] = []
    before = len(host.engine.requests)
    for n in [3] * (count // 3) + [1] * (count % 3):
        tasks.start_soon(ask, n)
    await host.engine.until(lambda: len(host.engine.requests) == before + count)


def finish(host: Hosted, *places: int) -> None:
    def rows(frame: Any) -> None:
        for place in places:
            frame.row(host.engine.requests[place].key, b"x", finish=Finish.STOP)

    host.engine.rows(rows)


def assert_overloaded(response: httpx.Response) -> None:
    error = error_of(response)
    assert (response.status_code, error["code"]) == (503, "overloaded")
    assert (error["type"], error["param"]) == ("server_error", None)
    assert int(response.headers["retry-after"]) >= 1
    assert int(response.headers["retry-after-ms"]) >= 1000
    assert "x-should-retry" not in response.headers
    assert "connection" not in response.headers  # the client may stay


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_full_server_refuses_what_generates_and_nothing_else(protocol: str) -> None:
    async with (
        hosted(max_waiting=WAITING) as host,
        host.client() as filling,  # httpx cannot read past two waiting streams of a connection
        host.client(protocol) as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, filling, tasks)
        for path in (CHAT, COMPLETIONS, RESPONSES):
            for stream in (False, True):
                assert_overloaded(await client.post(path, json={**BODIES[path], "stream": stream}))
        # Before anything else is done for it: nobody looks at its body.
        assert_overloaded(await client.post(CHAT, content=b"{", headers=JSON))
        assert_overloaded(await client.post(CHAT, content=b"x"))
        assert len(host.engine.requests) == MOST
        ready, health = await client.get("/ready"), await client.get("/health")
        assert (ready.status_code, ready.json()) == (503, {"status": "overloaded"})
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        for path in ("/tokenize", "/v1/responses/input_tokens"):
            body = BODIES[RESPONSES] if "input" in path else {"prompt": "hi"}
            assert (await client.post(path, json=body)).status_code == 200
        samples = await scrape(client)
        assert of(samples, "refused_requests_total", code="overloaded") == 8
        assert of(samples, "requests_running") + of(samples, "requests_waiting") == MOST
        finish(host, MOST - 1)
        with anyio.fail_after(GUARD_S):
            while host.service.fanout.running == MOST:
                await anyio.lowlevel.checkpoint()
        tasks.start_soon(lambda: client.post(CHAT, json=BODIES[CHAT]))
        await host.engine.until(lambda: len(host.engine.requests) == MOST + 1)
        finish(host, *range(MOST - 1), MOST)


@pytest.mark.parametrize("stream", [False, True])
async def test_choices_and_prompts_count_one_by_one(stream: bool) -> None:
    async with (
        hosted(max_waiting=WAITING) as host,
        host.client() as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, client, tasks, MOST - 3)
        for path, extra in (
            (CHAT, {"n": 4}),
            (COMPLETIONS, {"prompt": ["a", "b"], "n": 2}),
            (COMPLETIONS, {"prompt": ["a", "b", "c", "d"]}),
        ):
            body = {**BODIES[path], **extra, "stream": stream}
            assert_overloaded(await client.post(path, json=body))
        assert host.service.fanout.running == MOST - 3
        never = await client.post(CHAT, json={**BODIES[CHAT], "n": MOST + 1, "stream": stream})
        error = error_of(never)
        assert (never.status_code, error["code"], error["param"]) == (
            400, "integer_above_max_value", "n",
        )  # fmt: skip
        many = {**BODIES[COMPLETIONS], "prompt": ["a"] * (MOST // 2 + 1), "n": 2, "stream": stream}
        never = await client.post(COMPLETIONS, json=many)
        error = error_of(never)
        assert (never.status_code, error["code"], error["param"]) == (
            400, "array_above_max_length", "prompt",
        )  # fmt: skip
        tasks.start_soon(lambda: client.post(CHAT, json={**BODIES[CHAT], "n": 3}))
        await host.engine.until(lambda: host.service.fanout.running == MOST)
        finish(host, *range(MOST))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_of_many_at_once_as_many_are_let_in_as_there_is_room_for(protocol: str) -> None:
    answers: list[httpx.Response] = []
    async with hosted(max_waiting=WAITING) as host, host.client(protocol) as client:

        async def ask() -> None:
            answers.append(await client.post(CHAT, json=BODIES[CHAT]))

        async with anyio.create_task_group() as tasks:
            for _ in range(5 * MOST):
                tasks.start_soon(ask)
            with anyio.fail_after(GUARD_S):
                while len(answers) < 4 * MOST:
                    await asyncio.sleep(0.001)
                    assert host.service.fanout.running <= MOST
            for answer in answers:
                assert_overloaded(answer)
            await host.engine.until(lambda: len(host.engine.requests) == MOST)
            finish(host, *range(MOST))
    assert [answer.status_code for answer in answers[4 * MOST :]] == [200] * MOST


async def test_a_client_that_asks_first_keeps_its_body() -> None:
    async with (
        hosted(max_waiting=WAITING) as host,
        host.client() as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, client, tasks)
        async with H1Client.open(host.listener) as asking:
            await asking.send(
                f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n"
                "expect: 100-continue\r\ncontent-type: application/json\r\n\r\n".encode()
            )
            assert (await asking.until(b"\r\n")).startswith(b"HTTP/1.1 503 ")
        finish(host, *range(MOST))


async def test_a_refused_request_takes_nothing_from_the_rate() -> None:
    now = 0.0
    async with (
        hosted(max_waiting=WAITING, rate_limit=4, clock=lambda: now) as host,
        host.client() as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, client, tasks, MOST - 1)  # three calls
        body = {**BODIES[CHAT], "n": 1}
        tasks.start_soon(lambda: client.post(CHAT, json=body))  # and the fourth
        await host.engine.until(lambda: len(host.engine.requests) == MOST)
        assert_overloaded(await client.post(CHAT, json=body))
        finish(host, 0, 1, 2)
        with anyio.fail_after(GUARD_S):
            while host.service.fanout.running == MOST:
                await anyio.lowlevel.checkpoint()
        now = 15.0
        tasks.start_soon(lambda: client.post(CHAT, json=body))
        await host.engine.until(lambda: len(host.engine.requests) == MOST + 1)
        finish(host, *range(3, MOST + 1))


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_engine_that_has_no_room_is_the_same_refusal(stream: bool, path: str) -> None:
    async with hosted() as host, host.client() as client:
        host.engine.refusal = EngineError(code="engine_overloaded", message="/dev/gpu0")
        body = {**BODIES[path], "stream": stream}
        assert_overloaded(await client.post(path, json=body))
        assert of(await scrape(client), "refused_requests_total", code="overloaded") == 1


async def test_no_limit() -> None:
    async with (
        hosted(max_waiting=0) as host,
        host.client() as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, client, tasks, 300)
        finish(host, *range(300))


async def test_what_the_client_is_told_to_wait_follows_the_pace() -> None:
    async with (
        hosted(max_waiting=WAITING) as host,
        host.client() as client,
        anyio.create_task_group() as tasks,
    ):
        await fill(host, client, tasks)
        seconds = 1_000_000_000
        began = host.service.fanout.admission._since_ns
        host.service.fanout._monotonic_ns = lambda: began + 7 * seconds
        refused = await client.post(CHAT, content=json.dumps(BODIES[CHAT]), headers=JSON)
        assert {name: refused.headers.get(name) for name in RETRY} == {
            "retry-after": "7",
            "retry-after-ms": "7000",
            "x-should-retry": None,
        }
        finish(host, *range(MOST))


async def test_an_engine_that_has_no_room_is_waited_for_from_now_on() -> None:
    """Not from when the request came."""
    seconds = count(0, 7)
    async with hosted() as host, host.client() as client:
        host.service.fanout._monotonic_ns = lambda: next(seconds) * 1_000_000_000
        host.engine.refusal = EngineError(code="engine_overloaded", message="full")
        refused = await client.post(CHAT, json=BODIES[CHAT])
        assert int(refused.headers["retry-after"]) >= 7
