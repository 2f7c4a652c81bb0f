"""Answers that come to where nothing may be drawn: the client is told so, on every endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.tinychat.asking import ENDPOINTS, PARIS, PATHS, Asking, Endpoint, question


async def id_of(asking: Asking, text: str) -> int:
    given = {"model": "tinychat", "prompt": text, "add_special_tokens": False}
    response = await asking.client.post("/tokenize", json=given)
    (token,) = (await response.get_json())["tokens"]
    assert isinstance(token, int)
    return token


async def dead_end(asking: Asking, name: str) -> tuple[dict[str, Any], str, str]:
    """The fields that lead there, the param they come from, and words of the message."""
    if name == "end":
        stops = {"min_tokens": 5, "stop_token_ids": [await id_of(asking, "b")]}
        return {"regex": "ab{9}", **stops}, "regex", "the grammar and min_tokens exclude"
    form = {"json": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    return (
        {"structured_outputs": form, "allowed_token_ids": [await id_of(asking, "{")]},
        "structured_outputs.json",
        "the grammar and the allowed token ids exclude",
    )


@pytest.mark.parametrize("name", ["end", "ids"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_body_is_refused_with_the_engines_words(
    asking: Asking, endpoint: Endpoint, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "antiphon.runs")
    fields, param, words = await dead_end(asking, name)
    asked = {**question(endpoint, PARIS), "temperature": 0, **fields}
    error = (await asking.body(endpoint, 400, **asked))["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_schema")
    assert error["param"] == param
    assert words in error["message"]
    (line,) = (one for one in caplog.records if words in one.getMessage())
    assert line.levelname == "INFO"


@pytest.mark.parametrize("name", ["end", "ids"])
@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_stream_ends_with_the_engines_words(
    asking: Asking, endpoint: Endpoint, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether its head has left by then is up to the threads."""
    caplog.set_level("INFO", "antiphon.runs")
    fields, _, words = await dead_end(asking, name)
    asked = {"model": "tinychat", "stream": True, **question(endpoint, PARIS), **fields}
    response = await asking.client.post(PATHS[endpoint], json={**asked, "temperature": 0})
    data = await response.get_data(as_text=True)
    (line,) = (one for one in caplog.records if words in one.getMessage())
    if response.status_code == 400:
        assert words in json.loads(data)["error"]["message"]
        assert line.levelname == "INFO"
        return
    assert response.status_code == 200
    *frames, done, rest = data.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    last = json.loads(frames[-1].split("data: ", 1)[1])
    error = last["response"]["error"] if endpoint == "responses" else last["error"]
    assert error["code"] == "server_error"
    assert words in error["message"]
    assert line.levelname == "ERROR"


async def test_siblings_are_refused_together_and_the_next_answer_is_well(asking: Asking) -> None:
    fields, param, _ = await dead_end(asking, "end")
    error = (await asking.body("chat", 400, **question("chat", PARIS), **fields, n=3))["error"]
    assert error["param"] == param
    await asking.greedily("chat", PARIS)
