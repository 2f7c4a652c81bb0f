"""The body of an HTTP request: what is listed, and what a strict server refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from quart import Quart

from antiphon.api.body import SMALL, read_request
from antiphon.api.service import Service
from antiphon.errors import AntiphonError
from antiphon.requests.chat import parse_chat

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi", "foo": 1}], "store": True}


async def ask(
    body: dict[str, Any], *, strict: bool = False, headers: Mapping[str, str] | None = None
) -> Any:
    service = cast("Service", SimpleNamespace(strict_requests=strict, body_timeout_s=5))
    app = Quart(__name__)

    @app.post("/")
    async def read() -> dict[str, Any]:
        try:
            typed, ignored = await read_request(service, parse_chat)
        except AntiphonError as error:
            return {"status": error.status, **error.body()["error"]}
        return {"said": [message.content for message in typed.messages], "ignored": ignored}

    kind = {"content-type": "application/json", **(headers or {})}
    return await (await app.test_client().post("/", data=json.dumps(body), headers=kind)).get_json()


@pytest.mark.parametrize("size", [2, SMALL + 1])
async def test_both_lists_come_sorted_whatever_the_size(size: int) -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "x" * size, "foo": 1}], "a": {}}
    answer = await ask(body)
    assert answer == {"said": ["x" * size], "ignored": ["a", "messages[0].foo", "store"]}


async def test_strict_server_refuses_the_first_unknown_field_with_its_path() -> None:
    answer = await ask({**BODY, "zork": 1}, strict=True)
    assert (answer["status"], answer["code"]) == (400, "unknown_parameter")
    assert answer["param"] == "messages[0].foo"


async def test_strict_server_takes_fields_without_effect() -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "hi", "foo": None}]}
    assert await ask(body, strict=True) == {"said": ["hi"], "ignored": ["store"]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-type": "application/json; charset=utf-8"}, None),
        ({"content-encoding": "identity"}, None),
    ],
)
async def test_media_types(headers: dict[str, str], status: int | None) -> None:
    assert (await ask(BODY, headers=headers)).get("status") == status
