"""Parameters that the engine is asked to heed: each arrives there, from every endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from wire.told import Told

ENDPOINTS = ("chat", "completions", "responses")


def effect(param: str, value: Any, field: str, seen: Any) -> Any:
    """A parameter, the field of the engine's request that it becomes, and the value there."""
    marks = pytest.mark.wire(f"param:*.{param}")
    return pytest.param(param, value, field, seen, marks=marks, id=f"{param}-{value}")


EFFECTS = [
    effect("temperature", 0.3, "temperature", 0.3),
    effect("temperature", 0, "temperature", 0.0),
    effect("top_p", 0.25, "top_p", 0.25),
    effect("top_p", 0, "temperature", 0.0),
    effect("presence_penalty", -1.5, "presence", -1.5),
    effect("frequency_penalty", 0.5, "frequency", 0.5),
    effect("repetition_penalty", 1.25, "repetition", 1.25),
    effect("seed", 5, "seed", 5),
    effect("seed", -1, "seed", 2**64 - 1),
    effect("logit_bias", {"7": -100, "8": 2.5}, "logit_bias", {7: -100.0, 8: 2.5}),
    effect("top_k", 3, "top_k", 3),
    effect("top_k", -1, "top_k", 0),
    effect("min_p", 0.125, "min_p", 0.125),
    effect("min_tokens", 4, "min_tokens", 4),
    effect("ignore_eos", True, "ignore_eos", True),
    effect("stop_token_ids", [3, 4], "stop_ids", (3, 4)),
    effect("allowed_token_ids", [5, 6], "allowed_ids", (5, 6)),
    effect("priority", -3, "priority", -3),
    effect("cache_salt", "tenant é", "cache_salt", "tenant é".encode()),
]
NEUTRAL = {
    "temperature": 1.0, "top_p": 1.0, "presence": 0.0, "frequency": 0.0, "repetition": 1.0,
    "logit_bias": {}, "top_k": 0, "min_p": 0.0, "min_tokens": 0, "ignore_eos": False,
    "stop_ids": (), "allowed_ids": None, "priority": 0, "cache_salt": b"", "logprobs": None,
    "prompt_logprobs": None, "grammar": None,
}  # fmt: skip


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(("param", "value", "field", "seen"), EFFECTS)
async def test_it_reaches_the_engine(
    app: Told, endpoint: str, param: str, value: Any, field: str, seen: Any
) -> None:
    request = await app.asked(endpoint, **{param: value})
    assert getattr(request, field) == seen
    others = {name: neutral for name, neutral in NEUTRAL.items() if name != field}
    assert {name: getattr(request, name) for name in others} == others


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_without_parameters_the_engine_draws_freely(app: Told, endpoint: str) -> None:
    request = await app.asked(endpoint)
    assert {name: getattr(request, name) for name in NEUTRAL} == NEUTRAL
    assert request.seed != (await app.asked(endpoint)).seed


@pytest.mark.wire("param:*.n", "param:completions.best_of", "param:*.seed", "S1", "I3")
async def test_choices_are_requests_of_one_group_in_the_order_of_prompts(app: Told) -> None:
    body = await app.post("completions", prompt=["a", "b"], n=2, best_of=2, seed=9, request_id="t")
    requests = app.engine.requests
    assert [request.id for request in requests] == ["t-0", "t-1", "t-2", "t-3"]
    assert [request.seed for request in requests] == [9, 10, 11, 12]
    assert len({request.group for request in requests}) == 1
    decoded = [app.prompter.decode(request.prompt.tolist()) for request in requests]
    assert [text[-1] for text in decoded] == ["a", "a", "b", "b"]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    prompts = sum(len(requests[index].prompt) for index in (0, 2))
    assert body["usage"]["prompt_tokens"] == prompts
    chat = await app.post("chat", n=3)
    assert len(chat["choices"]) == len(app.engine.requests) == 3


@pytest.mark.wire("param:completions.best_of")
async def test_a_best_of_that_would_choose_is_refused(app: Told) -> None:
    assert await app.refused("completions", best_of=2) == ("best_of", "unsupported_value")


@pytest.mark.wire(
    "param:chat.max_tokens",
    "param:chat.max_completion_tokens",
    "param:completions.max_tokens",
    "param:responses.max_output_tokens",
    "P20",
)
async def test_limits_are_exact(app: Told) -> None:
    for endpoint, name in (
        ("chat", "max_tokens"),
        ("chat", "max_completion_tokens"),
        ("completions", "max_tokens"),
        ("responses", "max_output_tokens"),
    ):
        assert (await app.asked(endpoint, **{name: 1})).max_tokens == 1
    assert (await app.asked("chat", max_tokens=9, max_completion_tokens=7)).max_tokens == 7
    assert (await app.asked("completions")).max_tokens == 16
    for endpoint in ("chat", "responses"):
        request = await app.asked(endpoint)
        assert request.max_tokens == 600 - len(request.prompt)
    # What does not fit is cut by Responses alone.
    request = await app.asked("responses", max_output_tokens=10**6)
    assert request.max_tokens == 600 - len(request.prompt)
    for endpoint, name in (("chat", "max_completion_tokens"), ("completions", "max_tokens")):
        assert await app.refused(endpoint, **{name: 600}) == (name, "context_length_exceeded")


@pytest.mark.wire("P20")
async def test_null_is_the_default(app: Told) -> None:
    for endpoint in ENDPOINTS:
        response = await app.client.post(
            {"chat": "/v1/chat/completions"}.get(endpoint, f"/v1/{endpoint}"),
            json={
                "model": "m",
                "messages": [{"role": "user", "content": "hi"}] if endpoint == "chat" else None,
                "prompt": "hi" if endpoint == "completions" else None,
                "input": "hi" if endpoint == "responses" else None,
                "temperature": None,
                "stop": None,
                "max_output_tokens" if endpoint == "responses" else "max_tokens": None,
                "functions": None,
            },
        )
        assert response.status_code == 200
