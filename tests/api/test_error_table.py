"""Every row of the table of errors, asked for over a socket: status, type, code, param, headers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import httpx
import pytest

from antiphon.engines.port import EngineError
from api.hosted import BODIES, CHAT, COMPLETIONS, JSON, PROTOCOLS, RESPONSES, Hosted, hosted

INVALID = "invalid_request_error"
RETRY = ("retry-after", "retry-after-ms", "x-should-retry")
SOON = {"retry-after": "1", "retry-after-ms": "1000"}
KEY = {"authorization": "Bearer key"}


@attrs.frozen(kw_only=True)
class Row:
    """A request and the error that it gets."""

    code: str
    status: int = 400
    type: str = INVALID
    param: str | None = None
    method: str = "POST"
    path: str = CHAT
    body: dict[str, Any] | bytes | None = attrs.field(factory=dict)
    """Fields over those of a sound request of the path, or the bytes themselves."""
    without: str | None = None
    """A field that the sound request has and this one not."""
    headers: dict[str, str] = attrs.field(factory=dict)
    server: dict[str, Any] = attrs.field(factory=dict)
    before: Callable[[Hosted], object] = lambda host: None
    retry: dict[str, str] = attrs.field(factory=dict)
    """The retry headers; there are no others."""
    more: dict[str, str] = attrs.field(factory=dict)
    """Further headers of the answer."""
    says: str = ""
    times: int = 1
    """How often it is asked; the last answer counts."""


def refuses(
    code: str, message: str = "/usr/lib/engine.py line 3, 0xdeadbeef"
) -> Callable[[Hosted], None]:
    """The engine refuses everything, in words of its own."""

    def set_refusal(host: Hosted) -> None:
        host.engine.refusal = EngineError(code=code, message=message)

    return set_refusal


def breaks(host: Hosted) -> None:
    def fail(_: str) -> None:
        raise ZeroDivisionError("/secret/file.py")

    host.service.catalogue.require = fail  # type: ignore[assignment,method-assign]  # a bug


def shrinks(host: Hosted) -> None:
    host.engine.info.context_length = 5


def sickens(host: Hosted) -> None:
    host.engine.info.healthy = False


def of(code: str, param: str | None, **fields: Any) -> Row:
    """A field of a chat request that is refused."""
    return Row(code=code, param=param, body=fields)


MESSAGE = {"role": "user", "content": "hi"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "nonsense"}

ROWS = [
    Row(code="invalid_json", body=b"{"),
    Row(code="invalid_json", body=b"[]"),
    Row(code="invalid_json", body=b'{"temperature":NaN}'),
    Row(code="invalid_json", body=b'{"x":' + b"[" * 300 + b"]" * 300 + b"}"),
    Row(code="invalid_json", body=b'{"x":"\xff"}'),
    Row(code="invalid_json", body=b'{"x":"\\ud800"}'),
    Row(code="missing_required_parameter", param="messages", without="messages"),
    Row(code="missing_required_parameter", param="model", path=RESPONSES, without="model"),
    of("invalid_type", "temperature", temperature="1"),
    of("invalid_type", "n", n=True),
    of("invalid_type", "n", n=1.0),
    of("invalid_value", "messages[0].role", messages=[{"role": "boss", "content": "x"}]),
    of("integer_below_min_value", "n", n=0),
    of("integer_above_max_value", "n", n=129),
    of("decimal_below_min_value", "temperature", temperature=-0.1),
    of("decimal_above_max_value", "temperature", temperature=2.1),
    of("string_above_max_length", "user", user="x" * 513),
    of("array_above_max_length", "stop", stop=["a", "b", "c", "d", "e"]),
    of("empty_array", "messages", messages=[]),
    Row(
        code="object_above_max_properties",
        param="metadata",
        path=RESPONSES,
        body={"metadata": {str(number): "x" for number in range(17)}},
    ),
    of("unsupported_parameter", "functions", functions=[]),
    of("unsupported_parameter", "guided_json", guided_json={}),
    Row(code="unsupported_value", param="best_of", path=COMPLETIONS, body={"best_of": 2}),
    Row(code="unsupported_value", param="background", path=RESPONSES, body={"background": True}),
    Row(code="unknown_parameter", param="zork", body={"zork": 1}, server={"strict_requests": True}),
    of("conflicting_parameters", "reasoning", reasoning_effort="low", reasoning={"effort": "high"}),
    Row(code="model_not_found", param="model", body={"model": "nope"}),
    Row(
        code="model_not_found",
        status=404,
        param="model",
        body={"model": "nope"},
        server={"unknown_model_status": 404},
    ),
    *(
        Row(
            code="context_length_exceeded",
            param=param,
            path=path,
            before=shrinks,
            says="is longer than the model's context length",
        )
        for path, param in ((CHAT, "messages"), (COMPLETIONS, "prompt"), (RESPONSES, "input"))
    ),
    Row(
        code="context_length_exceeded",
        param="max_completion_tokens",
        body={"max_completion_tokens": 96},
        says="max_completion_tokens is too large",
    ),
    Row(
        code="context_length_exceeded",
        param="max_tokens",
        path=COMPLETIONS,
        body={"max_tokens": 96},
    ),
    Row(
        code="context_length_exceeded",
        param="messages",
        before=refuses("context_length_exceeded"),
        says="is longer than the model's context length",
    ),
    Row(
        code="invalid_schema",
        param="response_format.type",
        body={"response_format": {"type": "json_object"}},
        before=refuses("grammar_invalid", "No rule `x`."),
        says="No rule `x`.",
    ),
    Row(
        code="invalid_function_call_output",
        param="input[0].call_id",
        path=RESPONSES,
        body={"input": [OUTPUT]},
    ),
    Row(
        code="invalid_encrypted_content",
        param="input[0].encrypted_content",
        path=RESPONSES,
        body={"input": [SEALED, {"role": "user", "content": "hi"}]},
    ),
    *(
        Row(
            code="invalid_api_key",
            status=401,
            type="authentication_error",
            path=path,
            headers=headers,
            server={"api_key": ("key",)},
            more={"www-authenticate": "Bearer"},
        )
        for path, headers in ((CHAT, {}), (RESPONSES, {"authorization": "Bearer wrong"}))
    ),
    Row(
        code="model_not_found",
        status=404,
        param="model",
        method="GET",
        path="/v1/models/a/b",
        body=None,
    ),
    Row(
        code="response_not_found",
        status=404,
        param="response_id",
        method="GET",
        path="/v1/responses/resp_1",
        body=None,
    ),
    Row(
        code="previous_response_not_found",
        status=404,
        param="previous_response_id",
        path=RESPONSES,
        body={"previous_response_id": "resp_1"},
    ),
    Row(code="unknown_url", status=404, method="GET", path="/v2/nothing", body=None),
    Row(code="unknown_url", status=404, path="/v1/messages", body=b"{}"),
    Row(
        code="method_not_allowed",
        status=405,
        method="PATCH",
        body=None,
        more={"allow": "POST"},
    ),
    Row(
        code="method_not_allowed",
        status=405,
        path="/v1/models",
        body=b"{}",
        more={"allow": "GET, HEAD"},
    ),
    Row(code="request_too_large", status=413, body=b" " * 101, server={"max_body": 100}),
    Row(code="unsupported_media_type", status=415, headers={"content-type": "text/plain"}),
    Row(code="unsupported_media_type", status=415, headers={"content-encoding": "gzip"}),
    Row(code="headers_too_large", status=431, headers={"x-long": "x" * 33_000}),
    Row(
        code="headers_too_large",
        status=431,
        method="GET",
        path="/health",
        body=None,
        headers={f"x-{number}": "" for number in range(101)},
    ),
    Row(
        code="rate_limit_exceeded",
        status=429,
        type="rate_limit_error",
        body=b"{}",
        server={"rate_limit": 2},
        times=3,
        retry={"retry-after": "30", "retry-after-ms": "30000"},
    ),
    Row(code="internal_error", status=500, type="server_error", before=breaks),
    Row(code="server_error", status=500, type="server_error", before=refuses("engine_failed")),
    Row(
        code="engine_unavailable",
        status=503,
        type="server_error",
        before=sickens,
        retry=SOON,
    ),
    Row(
        code="overloaded",
        status=503,
        type="server_error",
        before=refuses("engine_overloaded"),
        retry=SOON,
    ),
]


def names() -> list[str]:
    """The code of each row, and its number where a code has several."""
    seen: dict[str, int] = {}
    result = []
    for row in ROWS:
        seen[row.code] = seen.get(row.code, 0) + 1
        result.append(row.code if seen[row.code] == 1 else f"{row.code}-{seen[row.code]}")
    return result


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error object, after a look at all that errors have in common."""
    assert response.headers["content-type"] == "application/json"
    body = json.loads(response.content)
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert error["message"]
    assert not re.search(r"Traceback|\.py|/usr|/secret|0x[0-9a-f]{4}", error["message"])
    assert response.headers["x-request-id"]
    return error


@pytest.mark.wire("error:<row.code>", "P5", "F10")
@pytest.mark.parametrize("stream", [False, True], ids=["unary", "stream"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("row", ROWS, ids=names())
async def test_row(row: Row, protocol: str, stream: bool) -> None:
    body = row.body
    if isinstance(body, dict):
        fields = {**BODIES[row.path], **body, "stream": stream}
        fields.pop(row.without or "", None)
        body = json.dumps(fields).encode()
    elif stream:
        return  # the body says nothing of it
    headers = {"x-request-id": "r 1", **(JSON if body is not None else {}), **row.headers}
    async with hosted(clock=lambda: 0.0, **row.server) as host, host.client(protocol) as client:
        row.before(host)
        for _ in range(row.times):
            response = await client.request(row.method, row.path, content=body, headers=headers)
    assert response.http_version == protocol
    error = error_of(response)
    assert (response.status_code, error["code"]) == (row.status, row.code)
    assert (error["type"], error["param"]) == (row.type, row.param)
    assert row.says in error["message"]
    assert response.headers["x-request-id"] == "r 1"
    told = {name: response.headers[name] for name in RETRY if name in response.headers}
    assert told == row.retry
    for name, value in row.more.items():
        assert response.headers[name] == value
