"""openai-node and the AI SDK, over HTTP/1.1 in the clear and HTTP/2 behind TLS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.conftest import HELLO
from conformance.conftest import TlsServer
from conformance.npm import packages, run_script

packages()

SCRIPTS = Path(__file__).parent / "node"
FAILURE = "The engine stopped unexpectedly"
REASONED = ("They greet me.", "Good day!")
MODELS = {
    "text": "plain/hello",
    "reasoning": "think/then-text",
    "refusal": "nope",
    "failure": "plain/error-in-text",
}
WAYS = ("chat", "chatStream", "responses", "responsesStream")
PROVIDERS = ("chat", "responses", "openResponses")
NO_RETRIES = {"maxRetries": 0}

Jobs = Mapping[str, Mapping[str, Any]]


def run_jobs(
    request: pytest.FixtureRequest, kind: str, script: str, jobs: Jobs
) -> dict[str, dict[str, Any]]:
    """What the script makes of each job against the server of this kind, by the job's name."""
    environment = {}
    protocol = request.getfixturevalue("protocol")
    if protocol == "HTTP/2":
        tls: TlsServer = request.getfixturevalue(f"{kind}_tls_server")
        server, environment["AUTHORITY"] = tls.server, Path(tls.authority).read_text()
    else:
        server = request.getfixturevalue(f"{kind}_server")
    given = {name: {"address": server.api, **job} for name, job in jobs.items()}
    workplace = request.getfixturevalue("tmp_path_factory").mktemp("node")
    told = json.loads(run_script(SCRIPTS / script, workplace, json.dumps(given), environment))
    assert told["protocols"] == [protocol]
    made: dict[str, dict[str, Any]] = told["made"]
    return made


@pytest.fixture(scope="module", params=["HTTP/1.1", "HTTP/2"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def openai_node(request: pytest.FixtureRequest, protocol: str) -> dict[str, dict[str, Any]]:
    """By what was asked and how."""
    jobs = {
        f"{what} {how}": {"how": how, "model": model}
        for what, model in MODELS.items()
        for how in WAYS
    }
    return run_jobs(request, "replay", "openai_node.mjs", jobs)


@pytest.fixture(scope="module")
def ai_sdk(request: pytest.FixtureRequest, protocol: str) -> dict[str, dict[str, Any]]:
    """By what was asked, of which provider, streamed or not."""
    jobs = {
        f"{what} {provider} {stream}": {
            "provider": provider,
            "model": model,
            "stream": stream,
            # Of a 500 it does not heed that it is not worth a second try.
            "options": NO_RETRIES if what == "failure" else {},
        }
        for what, model in MODELS.items()
        for provider in PROVIDERS
        for stream in (False, True)
    }
    return run_jobs(request, "replay", "ai_sdk.mjs", jobs)


SCRIPTED = {
    "tools/weather": (["Zürich"], "It is 17 degrees in Zürich."),
    "tools/think-first": (["Zürich"], "It is 17 degrees in Zürich."),
    "tools/two-calls": (["Oslo", "Rome"], "Oslo and Rome both have 17 degrees."),
}


@pytest.fixture(scope="module")
def openai_node_tools(request: pytest.FixtureRequest, protocol: str) -> dict[str, dict[str, Any]]:
    """By script and way."""
    jobs = {
        f"{script} {how}": {"how": how, "model": script}
        for script in SCRIPTED
        for how in ("chatTools", "responsesTools")
    }
    return run_jobs(request, "scripted", "openai_node.mjs", jobs)


@pytest.fixture(scope="module")
def ai_sdk_tools(request: pytest.FixtureRequest, protocol: str) -> dict[str, dict[str, Any]]:
    """By script and provider, streamed or not."""
    jobs = {
        f"{script} {provider} {stream}": {
            "provider": provider,
            "model": script,
            "stream": stream,
            "tools": True,
        }
        for script in SCRIPTED
        for provider in PROVIDERS
        for stream in (False, True)
    }
    return run_jobs(request, "scripted", "ai_sdk.mjs", jobs)


@pytest.mark.parametrize("how", ["chatTools", "responsesTools"])
@pytest.mark.parametrize("script", SCRIPTED)
def test_openai_node_runs_tools(
    openai_node_tools: dict[str, dict[str, Any]], script: str, how: str
) -> None:
    made = openai_node_tools[f"{script} {how}"]
    assert "error" not in made, made["error"]
    assert (made["asked"], made["text"]) == SCRIPTED[script]
    assert len(made["sent"]) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("script", SCRIPTED)
def test_ai_sdk_runs_tools(
    ai_sdk_tools: dict[str, dict[str, Any]], script: str, provider: str, stream: bool
) -> None:
    made = ai_sdk_tools[f"{script} {provider} {stream}"]
    assert "error" not in made, made["error"]
    assert (made["asked"], made["text"]) == SCRIPTED[script]
    assert (made["ending"], made["warned"]) == ("stop", [])
    assert len(made["sent"]) == 2


@pytest.mark.parametrize("how", WAYS)
def test_openai_node(openai_node: dict[str, dict[str, Any]], how: str) -> None:
    text, reasoning, refusal, failure = (openai_node[f"{what} {how}"] for what in MODELS)
    on_chat = how.startswith("chat")
    assert text["ending"] == ("stop" if on_chat else "completed")
    assert (text["text"], text["reasoning"]) == (HELLO, None)
    assert (reasoning["reasoning"], reasoning["text"]) == REASONED
    unary = openai_node[f"text {'chat' if on_chat else 'responses'}"]
    assert text["usage"] == unary["usage"]
    assert text["usage"]["total_tokens"] > 0
    refused, failed = refusal["error"], failure["error"]
    assert (refused["kind"], refused["status"]) == ("BadRequestError", 400)
    assert (refused["code"], refused["param"]) == ("model_not_found", "model")
    assert failed["kind"] == ("APIError" if how.endswith("Stream") else "InternalServerError")
    assert failed["code"] == "server_error"
    assert FAILURE in failed["message"]
    for made in (text, reasoning, refusal, failure):
        assert made["sent"] == ["/v1/chat/completions" if on_chat else "/v1/responses"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_ai_sdk(ai_sdk: dict[str, dict[str, Any]], provider: str, stream: bool) -> None:
    made = [ai_sdk[f"{what} {provider} {stream}"] for what in MODELS]
    text, reasoning, refusal, failure = made
    for answer, due in ((text, HELLO), (reasoning, REASONED[1])):
        assert answer["text"] == due
        assert answer["deltas"] == (due if stream else None)
        assert (answer["ending"], answer["warned"]) == ("stop", [])
        assert min(answer["tokens"]) > 0
    # `@ai-sdk/openai` shows summaries alone, which OpenAI makes and this server does not.
    assert reasoning["reasoning"] == (REASONED[0] if provider == "openResponses" else None)
    assert "`nope`" in refusal["error"]["message"]
    if stream or provider != "openResponses":
        assert FAILURE in failure["error"]["message"]
    else:  # it reads no message where `param` is null
        assert failure["error"]["name"] == "AI_APICallError"
    path = "/v1/chat/completions" if provider == "chat" else "/v1/responses"
    assert all(each["sent"] == [path] for each in made)
