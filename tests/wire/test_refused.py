"""Known names that are refused or have no effect: by name, and never in silence."""

from __future__ import annotations

from typing import Any

import pytest

from wire.rows import IGNORED, REFUSED, load, names_of
from wire.told import Told

ENDPOINTS = ("chat", "completions", "responses")
ROWS = load()


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        pytest.param(endpoint, name, marks=pytest.mark.wire(f"param:{endpoint}.{name}", "S18"))
        for endpoint in ENDPOINTS
        for name in names_of(ROWS, endpoint, REFUSED)
    ],
)
async def test_a_name_that_is_not_offered(app: Told, endpoint: str, name: str) -> None:
    assert await app.refused(endpoint, **{name: "x"}) == (name, "unsupported_parameter")
    fields: dict[str, Any] = {name: []}
    body = await app.post(endpoint, 400, **fields)
    assert body["error"]["param"] == name
    if name.startswith("guided_"):
        assert "structured_outputs" in body["error"]["message"]


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [
        pytest.param(endpoint, name, marks=pytest.mark.wire(f"param:{endpoint}.{name}"))
        for endpoint in ENDPOINTS
        for name in names_of(ROWS, endpoint, IGNORED)
    ],
)
async def test_a_name_without_effect_is_told(app: Told, endpoint: str, name: str) -> None:
    outer, _, inner = name.partition(".")
    fields: dict[str, Any] = {outer: {inner: True}, "stream": True} if inner else {outer: "x"}
    await app.post(endpoint, **fields)
    assert app.headers["antiphon-ignored-fields"] == name


ONE_VALUE = [
    ("*", "spaces_between_special_tokens", True, "unsupported_value"),
    ("*", "stream_reasoning", True, "unsupported_value"),
    ("*", "return_hidden_states", False, "unsupported_value"),
    ("chat", "echo", False, "unsupported_value"),
    ("responses", "background", False, "unsupported_value"),
]


@pytest.mark.parametrize(
    ("endpoint", "name", "offered", "code"),
    [
        pytest.param(
            endpoint, name, offered, code,
            marks=pytest.mark.wire(f"param:{endpoint}.{name}"), id=f"{endpoint}-{name}",
        )
        for endpoint, name, offered, code in ONE_VALUE
    ],
)  # fmt: skip
async def test_one_value_alone(
    app: Told, endpoint: str, name: str, offered: bool, code: str
) -> None:
    for each in ("chat", "completions", "responses") if endpoint == "*" else (endpoint,):
        fields: dict[str, Any] = {name: offered}
        await app.post(each, **fields)
        assert "antiphon-ignored-fields" not in app.headers
        assert await app.refused(each, **{name: not offered}) == (name, code)


@pytest.mark.wire("param:chat.modalities")
async def test_text_is_the_only_modality(app: Told) -> None:
    await app.post("chat", modalities=["text"])
    assert await app.refused("chat", modalities=["text", "audio"]) == (
        "modalities[1]",
        "unsupported_value",
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.wire(f"param:*.structured_outputs.{name}"))
        for name in (
            "structural_tag",
            "disable_any_whitespace",
            "disable_additional_properties",
            "disable_fallback",
            "whitespace_pattern",
        )
    ],
)
@pytest.mark.parametrize("endpoint", ["chat", "completions", "responses"])
async def test_inside_structured_outputs(app: Told, endpoint: str, name: str) -> None:
    assert await app.refused(endpoint, structured_outputs={"regex": "a", name: True}) == (
        f"structured_outputs.{name}",
        "unsupported_parameter",
    )


@pytest.mark.wire("param:responses.reasoning.context", "param:responses.reasoning.mode")
@pytest.mark.parametrize("name", ["context", "mode"])
async def test_inside_reasoning(app: Told, name: str) -> None:
    assert await app.refused("responses", reasoning={name: "x"}) == (
        f"reasoning.{name}",
        "unsupported_parameter",
    )


@pytest.mark.wire("S3")
async def test_functions_name_what_to_use(app: Told) -> None:
    for name, instead in (("functions", "`tools`"), ("function_call", "`tool_choice`")):
        fields: dict[str, Any] = {name: []}
        body = await app.post("chat", 400, **fields)
        assert body["error"]["param"] == name
        assert instead in body["error"]["message"]


@pytest.mark.wire(
    "param:responses.previous_response_id", "S14", "error:previous_response_not_found"
)
async def test_nothing_came_before(app: Told) -> None:
    body = await app.post("responses", 404, previous_response_id="resp_1")
    assert body["error"]["param"] == "previous_response_id"
    assert body["error"]["code"] == "previous_response_not_found"
    assert await app.refused("responses", previous_response_id="msg_1") == (
        "previous_response_id",
        "invalid_value",
    )
