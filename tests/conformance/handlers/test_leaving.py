"""A client that goes away from the README's handlers: the engine stops, the log ends cancelled."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect

from conformance.handlers.conftest import ANSWER, HANDLERS, Engine, Served, program_of
from responsory import EventLog
from responsory import events as ev
from responsory.projections import response_body
from responsory.segments import Segmenter
from responsory.testing import check_log


@pytest.mark.parametrize("talks", [False, True])
async def test_a_client_that_leaves_cancels(served: Served, talks: bool) -> None:
    engine = served.program["engine"] = Engine(talks)
    async with served.client.stream("POST", "/v1/responses", json={"input": "hi"}) as answer:
        async for line in answer.aiter_lines():
            if line == "event: response.output_text.delta":
                break
    await ended(engine, served.log)
    assert type(served.log[-1]) is ev.Cancelled
    check_log(served.log[:])
    body = response_body(served.log)
    assert body["status"] == "cancelled"
    assert body["output"][0]["content"][0]["text"].startswith("Hi")


async def test_others_go_on_when_a_client_leaves(served: Served) -> None:
    engine = served.program["engine"] = Engine(talks=False)
    async with served.client.stream("POST", "/v1/responses", json={"input": "hi"}) as answer:
        await anext(answer.aiter_lines())
        served.program["engine"] = served.own_engine
        assert (await served.stream()).endswith(b"data: [DONE]\n\n")
    cancelled, completed = served.program["logs"].values()
    await ended(engine, cancelled)
    assert [type(log[-1]) for log in (cancelled, completed)] == [ev.Cancelled, ev.Completed]


async def ended(engine: Engine, log: EventLog) -> None:
    """The engine was stopped, and then the log ended. The bound is for a server that never does."""
    with anyio.fail_after(30):
        await engine.closed.wait()
        while not log.terminal:
            await anyio.lowlevel.checkpoint()


async def test_closing_the_answer_closes_the_engine_at_once() -> None:
    program = program_of(ANSWER)
    engine = Engine(talks=False)
    answer = program["answer"](engine("hi"), Segmenter())
    for _ in range(2):
        await anext(answer)
    await answer.aclose()
    assert engine.closed.is_set()
    (log,) = program["logs"].values()
    assert type(log[-1]) is ev.Cancelled


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
async def test_starlette_closes_the_answer_of_a_client_that_left_in_mid_frame(
    spec_version: str,
) -> None:
    """Whichever way the server tells it: a disconnect while ``send`` waits, or ``send`` raises."""
    program = program_of(*HANDLERS["starlette"])
    engine = program["engine"] = Engine(talks=True)
    left = anyio.Event()
    messages: list[Any] = [{"type": "http.request", "body": b'{"input": "hi"}', "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if b"output_text.delta" in message.get("body", b""):
            left.set()
            if spec_version == "2.4":
                raise OSError("the connection is closed")
            await anyio.sleep_forever()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": spec_version},
        "method": "POST",
        "path": "/v1/responses",
        "headers": [],
        "query_string": b"",
    }
    with anyio.fail_after(30):
        if spec_version == "2.4":
            with pytest.raises(ClientDisconnect):
                await program["app"](scope, receive, send)
        else:
            await program["app"](scope, receive, send)
    assert engine.closed.is_set()
    (log,) = program["logs"].values()
    assert type(log[-1]) is ev.Cancelled
