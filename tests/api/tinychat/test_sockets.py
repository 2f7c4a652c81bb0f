"""The fixture model behind a real socket: answers arrive, and who leaves frees the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import attrs
import httpx
import openai
import pytest

from antiphon.api.service import Service
from antiphon.app import make_app, make_service, new_tail, running
from antiphon.loading import load
from antiphon.transport.ending import Ending
from antiphon.transport.limits import DEFAULT_LIMITS
from antiphon.transport.listener import bind
from antiphon.transport.settings import HostConfig
from antiphon.transport.worker import serve_on
from api.tinychat.asking import ENDPOINTS, PARIS, PATHS, Endpoint, answers, question
from api.tinychat.conftest import CONFIG
from known_replies import REPLIES

GUARD_S = 30
STORY = REPLIES["story-2.1"]


@attrs.frozen
class Host:
    """A server in the test's own event loop."""

    service: Service
    url: str

    async def until_idle(self) -> None:
        """Nothing runs and nothing waits, by the engine's own latest word."""
        with anyio.fail_after(GUARD_S):
            while self.service.fanout.running or self.service.fanout.load != (0, 0):
                await anyio.lowlevel.checkpoint()


@pytest.fixture(scope="module")
async def host() -> AsyncIterator[Host]:
    async with hosted() as each:
        yield each


@asynccontextmanager
async def hosted() -> AsyncIterator[Host]:
    engine, models, _ = await load(CONFIG)
    service = make_service(engine, models, CONFIG)
    ending = Ending()
    with bind("127.0.0.1", 0) as listener:
        async with running(service), anyio.create_task_group() as tasks:
            tasks.start_soon(
                partial(
                    serve_on,
                    make_app(service),
                    [listener],
                    ending,
                    config=HostConfig(new_tail, DEFAULT_LIMITS),
                    grace_s=0,
                    drain=partial(service.fanout.drain, 0),
                )
            )
            yield Host(service, listener.url)
            ending.ask()


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_client_that_leaves_a_stream_ends_its_request(
    host: Host, endpoint: Endpoint
) -> None:
    """It would go on to the end of the context; after it others are answered as ever."""
    fields = {**question(endpoint, STORY), "ignore_eos": True, "temperature": 0, "stream": True}
    for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        fields.pop(name, None)
    if endpoint == "completions":
        fields["max_tokens"] = 1_900
    body = {"model": "tinychat", **fields}
    async with httpx.AsyncClient(base_url=host.url, timeout=GUARD_S) as client:
        async with client.stream("POST", PATHS[endpoint], json=body) as response:
            assert response.status_code == 200
            async for _ in response.aiter_bytes():
                break
            assert host.service.fanout.running == 1
        await host.until_idle()
        asked = {"model": "tinychat", **question(endpoint, PARIS), "temperature": 0}
        answered = await client.post(PATHS[endpoint], json=asked)
    assert [one.text for one in answers(endpoint, answered.json())] == [PARIS.reply]


async def test_a_client_that_leaves_a_body_ends_its_request(host: Host) -> None:
    fields = {"prompt": STORY.prompt, "ignore_eos": True, "max_tokens": 1_900, "n": 3}
    async with httpx.AsyncClient(base_url=host.url, timeout=GUARD_S) as client:
        with anyio.fail_after(GUARD_S):
            async with anyio.create_task_group() as tasks:
                body = {"model": "tinychat", **fields}
                tasks.start_soon(partial(client.post, "/v1/completions", json=body))
                while host.service.fanout.load[0] < 3:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        await host.until_idle()


async def test_the_openai_sdk_reads_it(host: Host) -> None:
    """Streams and bodies of a true model, of all three endpoints."""
    async with openai.AsyncOpenAI(base_url=f"{host.url}/v1", api_key="none") as client:
        stream = await client.chat.completions.create(
            model="tinychat",
            messages=[{"role": "user", "content": PARIS.messages[0]["content"]}],
            temperature=0,
            stream=True,
        )
        said = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(said) == PARIS.reply
        assert len([piece for piece in said if piece]) > 4, "it came in pieces"
        response = await client.responses.create(
            model="tinychat", input=STORY.messages[0]["content"], temperature=0
        )
        assert response.output_text == STORY.reply
        completion = await client.completions.create(
            model="tinychat", prompt=PARIS.prompt, temperature=0, max_tokens=50
        )
        assert completion.choices[0].text == PARIS.reply


async def test_all_kinds_at_once_over_one_server(host: Host) -> None:
    """More than run together, on every endpoint: each gets its own reply."""
    found: dict[tuple[Endpoint, str], str] = {}
    names = [name for name, known in REPLIES.items() if known.kind in ("chat", "unicode", "json")]

    async def ask(client: httpx.AsyncClient, endpoint: Endpoint, name: str) -> None:
        asked = {"model": "tinychat", **question(endpoint, REPLIES[name]), "temperature": 0}
        answered = await client.post(PATHS[endpoint], json=asked)
        (answer,) = answers(endpoint, answered.json())
        found[endpoint, name] = answer.text

    limits = httpx.Limits(max_connections=24)
    async with (
        httpx.AsyncClient(base_url=host.url, timeout=GUARD_S, limits=limits) as client,
        anyio.create_task_group() as tasks,
    ):
        for endpoint in ENDPOINTS:
            for name in names:
                tasks.start_soon(ask, client, endpoint, name)
    assert found == {
        (endpoint, name): REPLIES[name].reply for endpoint in ENDPOINTS for name in names
    }
    await host.until_idle()
