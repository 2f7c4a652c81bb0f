"""No body makes the server answer with a fault of its own, or outside its contract.

``FUZZ_BODIES`` says how many bodies are tried (300), ``FUZZ_SEED`` which ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz.answers import Answer, check
from fuzz.bodies import REPLAYED, Body, bodies
from fuzz.conftest import TINY, Fuzzed
from fuzz.size import BODIES, SEED

PATIENCE_S = 60
"""For one answer: it means that a request hangs, on a machine however busy."""
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
COUNT, ENCODE, DECODE = "/v1/responses/input_tokens", "/tokenize", "/detokenize"
SAYS = (
    '<think>Which é?</think>Both.<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    '<tool_call>\n{"name": "f"}\n</tool_call> after <tool_cal'
)
FAIL = (b"/error", b"/no-finish")


def tries(percent: int, path: str, *models: str) -> Callable[[Any], Any]:
    """The test runs for so many of a hundred bodies."""

    def decorate(test: Any) -> Any:
        wrapped = given(body=bodies(path, models))(test)
        options = settings(
            max_examples=max(1, BODIES * percent // 100),
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        return seed(SEED)(options(wrapped))

    return decorate


async def send(bench: Fuzzed, path: str, body: bytes) -> None:
    """Post the body, and check what comes back."""
    with anyio.fail_after(PATIENCE_S):
        response = await bench.client.post(
            path, data=body, headers={"content-type": "application/json"}
        )
        data = await response.get_data(as_text=False)
    assert isinstance(data, bytes)
    headers = {name.lower(): value for name, value in response.headers.items()}
    check(path, Answer(response.status_code, headers, data), may_fail=fails(body))
    bench.statuses[path, response.status_code] += 1


def fails(body: bytes) -> bool:
    """Whether the recording that is asked for ends in a failure."""
    return any(word in body for word in FAIL)


@tries(20, CHAT, *REPLAYED)
async def test_chat(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, CHAT, body.data)


@tries(20, RESPONSES, *REPLAYED)
async def test_responses(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, RESPONSES, body.data)


@tries(16, COMPLETIONS, *REPLAYED)
async def test_completions(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, COMPLETIONS, body.data)


@tries(6, COUNT, *REPLAYED)
async def test_input_tokens(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, COUNT, body.data)


@tries(3, ENCODE, "plain/unicode", "plain/hello")
async def test_tokenize(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, ENCODE, body.data)


@tries(3, DECODE, "plain/unicode", "plain/hello")
async def test_detokenize(replayed: Fuzzed, body: Body) -> None:
    await send(replayed, DECODE, body.data)


@tries(4, CHAT, *REPLAYED)
async def test_a_strict_server(strict: Fuzzed, body: Body) -> None:
    await send(strict, CHAT, body.data)


@tries(4, CHAT, TINY)
async def test_chat_with_a_model(tiny: Fuzzed, body: Body) -> None:
    await send(tiny, CHAT, body.data)


@tries(4, RESPONSES, TINY)
async def test_responses_with_a_model(tiny: Fuzzed, body: Body) -> None:
    await send(tiny, RESPONSES, body.data)


@tries(4, COMPLETIONS, TINY)
async def test_completions_with_a_model(tiny: Fuzzed, body: Body) -> None:
    await send(tiny, COMPLETIONS, body.data)


@tries(3, ENCODE, TINY)
async def test_tokenize_with_a_model(tiny: Fuzzed, body: Body) -> None:
    await send(tiny, ENCODE, body.data)


@tries(2, DECODE, TINY)
async def test_detokenize_with_a_model(tiny: Fuzzed, body: Body) -> None:
    await send(tiny, DECODE, body.data)


@tries(6, CHAT, "m")
async def test_chat_with_tools(told_all: Fuzzed, body: Body) -> None:
    told_all.app.say(SAYS)
    await send(told_all, CHAT, body.data)


@tries(6, RESPONSES, "m")
async def test_responses_with_tools(told_all: Fuzzed, body: Body) -> None:
    told_all.app.say(SAYS)
    await send(told_all, RESPONSES, body.data)


@tries(3, COMPLETIONS, "m")
async def test_completions_of_a_model_that_can_do_all(told_all: Fuzzed, body: Body) -> None:
    told_all.app.say(SAYS)
    await send(told_all, COMPLETIONS, body.data)
