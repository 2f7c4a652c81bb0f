"""The body of an HTTP request: what is listed, and what a strict server refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from quart import Quart, g
from werkzeug.datastructures import Headers

from antiphon.api.body import LARGE, SMALL, read_request
from antiphon.api.service import Service
from antiphon.errors import AntiphonError
from antiphon.requests.chat import ChatRequest, parse_chat

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi", "foo": 1}], "store": True}


async def ask(
    body: dict[str, Any],
    *,
    strict: bool = False,
    parse: Callable[[Mapping[str, Any]], ChatRequest] = parse_chat,
    headers: Sequence[tuple[str, str]] = (("content-type", "application/json"),),
) -> Any:
    service = cast("Service", SimpleNamespace(strict_requests=strict, body_timeout_s=5))
    app = Quart(__name__)

    @app.post("/")
    async def read() -> dict[str, Any]:
        try:
            typed, ignored = await read_request(service, parse)
        except AntiphonError as error:
            return {"status": error.status, **error.body()["error"]}
        said = [message.content for message in typed.messages]
        return {"said": said, "ignored": ignored, "unnamed": g.unnamed}

    response = await app.test_client().post("/", data=json.dumps(body), headers=Headers(headers))
    return await response.get_json()


@pytest.mark.parametrize("size", [2, SMALL + 1, LARGE + 1])
async def test_both_lists_come_sorted_whatever_the_size(size: int) -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "x" * size, "foo": 1}], "a": {}}
    answer = await ask(body)
    assert answer == {"said": ["x" * size], "ignored": ["a", "messages[0].foo", "store"],
                      "unnamed": 0}  # fmt: skip


async def test_what_is_not_small_is_parsed_in_a_thread() -> None:
    places = []

    def parse(body: Mapping[str, Any]) -> ChatRequest:
        places.append(threading.get_ident() == here)
        return parse_chat(body)

    here = threading.get_ident()
    for size in (2, SMALL, LARGE):
        content = {"role": "user", "content": "x" * size}
        await ask({"model": "m", "messages": [content]}, parse=parse)
    assert places == [True, False, False]


async def test_strict_server_refuses_the_first_unknown_field_with_its_path() -> None:
    answer = await ask({**BODY, "zork": 1}, strict=True)
    assert (answer["status"], answer["code"]) == (400, "unknown_parameter")
    assert answer["param"] == "messages[0].foo"


async def test_strict_server_takes_fields_without_effect() -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "hi", "foo": None}]}
    assert (await ask(body, strict=True))["ignored"] == ["store"]


async def test_of_very_many_unknown_fields_the_first_are_named_and_all_are_counted() -> None:
    names = [f"field_{index:05}" for index in range(5000)]
    answer = await ask({**BODY, **dict.fromkeys(reversed(names), 1)})
    assert answer["ignored"] == [*names[:20], "store"]
    assert answer["unnamed"] == 5000 + 1 - 20  # and the one in the message


async def test_a_refused_name_is_no_echo_of_megabytes() -> None:
    for body in ({"x" * 100_000: 1}, {"logit_bias": {"x" * 100_000: 1}}):
        messages = [{"role": "user", "content": "hi"}]
        answer = await ask({"model": "m", "messages": messages, **body}, strict=True)
        assert answer["status"] == 400
        assert len(json.dumps(answer)) < 700
        assert answer["param"].startswith(("xxx", "logit_bias.xxx"))


KIND, CODING = "content-type", "content-encoding"
OURS = (KIND, "application/json")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 415),
        ([(KIND, "text/plain")], 415),
        ([(KIND, "")], 415),
        ([(KIND, "application/json, text/plain")], 415),
        ([OURS, (KIND, "text/plain")], 415),
        ([(KIND, "text/plain"), OURS], 415),
        ([OURS], None),
        ([OURS, OURS], None),
        ([(KIND, "Application/JSON; charset=utf-8")], None),
        ([OURS, (CODING, "gzip")], 415),
        ([OURS, (CODING, "identity, gzip")], 415),
        ([OURS, (CODING, "identity"), (CODING, "gzip")], 415),
        ([OURS, (CODING, "gzip"), (CODING, "identity")], 415),
        ([OURS, (CODING, "identity"), (CODING, "Identity")], None),
        ([OURS, (CODING, "")], None),
    ],
)
async def test_every_media_type_and_encoding_counts(
    headers: list[tuple[str, str]], status: int | None
) -> None:
    assert (await ask(BODY, headers=headers)).get("status") == status


async def test_a_host_that_does_not_watch_over_bodies_is_not_relied_on() -> None:
    service = cast("Service", SimpleNamespace(strict_requests=False, body_timeout_s=0.01))
    app = Quart(__name__)

    @app.post("/")
    async def read() -> tuple[str, int]:
        try:
            await read_request(service, parse_chat)
        except AntiphonError as error:
            return error.code, error.status
        return "read", 200

    headers = Headers([("content-type", "application/json")])
    async with app.test_client().request("/", method="POST", headers=headers) as client:
        await client.send(b"{")
        assert await client.receive() == b"request_timeout"
        assert (await client.as_response()).status_code == 408
