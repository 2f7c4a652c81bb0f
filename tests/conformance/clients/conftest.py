"""Servers for clients, and clients of both protocols that count what they send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

import attrs
import openai
import pytest

from conformance.conftest import FIXTURES, REPLAY, Server, TlsServer, serving, serving_tls

HERE = Path(__file__).parent
RECORDINGS = HERE / "recordings"

ASK: list[Any] = [{"role": "user", "content": "Hi"}]
HELLO = "Hello there! How can I help?"
"""What the recording ``plain/hello`` says, whatever is asked."""

Protocol = Literal["HTTP/1.1", "HTTP/2"]


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[Server]:
    """The scripts under ``recordings``, flat out."""
    with serving(*REPLAY, str(RECORDINGS)) as server:
        yield server


@pytest.fixture(scope="session")
def replay_tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    """Every recording of the repository, over TLS."""
    with serving_tls(tmp_path_factory.mktemp("tls"), *REPLAY, str(FIXTURES)) as server:
        yield server


@pytest.fixture(scope="session")
def scripted_tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    """The scripts, over TLS."""
    with serving_tls(tmp_path_factory.mktemp("tls"), *REPLAY, str(RECORDINGS)) as server:
        yield server


@attrs.define
class Wire:
    """What went over the wire of one client: every request, and every answer's head."""

    protocol: Protocol
    requests: list[Any] = attrs.field(factory=list)
    responses: list[Any] = attrs.field(factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """Of an httpx client. Over a connection in the clear HTTP/2 begins at once."""
        http2 = self.protocol == "HTTP/2"
        return {
            "http1": not http2,
            "http2": http2,
            "timeout": 30,
            "event_hooks": {"request": [self.requests.append], "response": [self._received]},
        }

    @property
    def async_options(self) -> dict[str, Any]:
        async def sent(request: Any) -> None:
            self.requests.append(request)

        async def received(response: Any) -> None:
            self._received(response)

        return {**self.options, "event_hooks": {"request": [sent], "response": [received]}}

    def _received(self, response: Any) -> None:
        assert response.http_version == self.protocol
        self.responses.append(response)


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(request.param)


@pytest.fixture
def replay(replay_server: Server, wire: Wire) -> Iterator[openai.OpenAI]:
    """openai-python, with its own number of retries, at every recording of the repository."""
    with sync_openai(replay_server, wire) as client:
        yield client


@pytest.fixture
def scripted(scripted_server: Server, wire: Wire) -> Iterator[openai.OpenAI]:
    """openai-python at the scripts."""
    with sync_openai(scripted_server, wire) as client:
        yield client


@pytest.fixture
async def async_replay(replay_server: Server, wire: Wire) -> AsyncIterator[openai.AsyncOpenAI]:
    async with async_openai(replay_server, wire) as client:
        yield client


@pytest.fixture
async def async_scripted(scripted_server: Server, wire: Wire) -> AsyncIterator[openai.AsyncOpenAI]:
    async with async_openai(scripted_server, wire) as client:
        yield client


def sync_openai(server: Server, wire: Wire) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(**wire.options)
    return openai.OpenAI(base_url=server.api, api_key="none", http_client=http)


def async_openai(server: Server, wire: Wire) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(**wire.async_options)
    return openai.AsyncOpenAI(base_url=server.api, api_key="none", http_client=http)
