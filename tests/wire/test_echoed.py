"""What the Responses resource says of the request, and that it is in the stream's too."""

from __future__ import annotations

from typing import Any

import pytest

from api.sse import events
from wire.told import Told

ECHOED: list[tuple[str, Any, Any]] = [
    ("user", "me", "me"),
    ("metadata", {"a": "b"}, {"a": "b"}),
    ("max_tool_calls", 3, 3),
    ("prompt_cache_key", "k", "k"),
    ("prompt_cache_retention", "24h", "24h"),
    ("safety_identifier", "s", "s"),
    ("service_tier", "priority", "default"),
    ("store", True, False),
    ("instructions", "be", "be"),
    ("max_output_tokens", 9, 9),
    ("truncation", "auto", "auto"),
    ("temperature", 1, 1.0),
    ("top_p", 0.5, 0.5),
    ("presence_penalty", 1, 1.0),
    ("frequency_penalty", -1, -1.0),
]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        pytest.param(name, value, told, marks=pytest.mark.wire(f"param:responses.{name}"), id=name)
        for name, value, told in ECHOED
    ],
)
async def test_the_resource_tells(app: Told, name: str, value: Any, told: Any) -> None:
    body = await app.post("responses", **{name: value})
    assert body[name] == told
    assert type(body[name]) is type(told)
    stream = events((await app.post("responses", stream=True, **{name: value})).encode())
    snapshots = [data["response"] for event, data in stream[:-1] if "response" in data]
    assert len(snapshots) == 3
    assert all(snapshot[name] == told for snapshot in snapshots)


@pytest.mark.wire("param:responses.reasoning.summary", "param:responses.reasoning.generate_summary")
async def test_a_summary_is_told_and_not_made(app: Told) -> None:
    for name in ("summary", "generate_summary"):
        body = await app.post("responses", says="<think>x</think>y", reasoning={name: "detailed"})
        assert body["reasoning"] == {"effort": None, "summary": "detailed"}
        assert body["output"][0]["summary"] == []
    assert (await app.post("responses"))["reasoning"] is None


@pytest.mark.wire("param:chat.user", "param:completions.user", "S5")
async def test_elsewhere_nothing_is_told(app: Told) -> None:
    for endpoint in ("chat", "completions"):
        body = await app.post(endpoint, user="me")
        assert "user" not in body
        assert "system_fingerprint" not in body
        assert "antiphon-ignored-fields" not in app.headers


@pytest.mark.wire("S14", "param:responses.store")
async def test_without_a_store_nothing_is_kept(app: Told) -> None:
    for store in (True, False):
        body = await app.post("responses", store=store)
        assert body["store"] is False
        response = await app.client.get(f"/v1/responses/{body['id']}")
        assert response.status_code == 404
