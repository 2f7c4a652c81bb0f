"""What every answer of the server must be, whatever was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import TypeAdapter

from responsory.check import check_stream
from responsory.check.report import Api

STATUSES = frozenset({200, 400, 404, 413, 415})
"""401, 405, 408, 429 and 431 have causes outside the body; 409 and 422 are never sent."""
LEAK = re.compile(r'Traceback|File "|\.py\b|0x[0-9a-f]{6,}|/site-packages/|object at ')
HEADER = re.compile(r"[\x21-\x7e]*")
"""A name in a header: JSON allows an empty one."""
APIS: Mapping[str, Api] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
}
TYPES: Mapping[str, TypeAdapter[Any]] = {
    "/v1/chat/completions": TypeAdapter(ChatCompletion),
    "/v1/completions": TypeAdapter(Completion),
    "/v1/responses": TypeAdapter(Response),
}


@attrs.frozen
class Answer:
    """A whole answer, as it came."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def check(path: str, answer: Answer, *, may_fail: bool) -> None:
    """``may_fail``: the recorded engine fails, which is a 500 ``server_error`` and no other."""
    assert answer.headers.get("x-request-id")
    ignored = answer.headers.get("antiphon-ignored-fields")
    if ignored is not None:
        names = ignored.split(", ")
        assert 1 <= len(names) <= 20
        assert all(HEADER.fullmatch(name) for name in names)
    if answer.status != 200:
        error = refusal(answer)
        if answer.status == 500:
            assert may_fail
            assert error["code"] == "server_error"
        else:
            assert answer.status in STATUSES
            assert error["type"] == "invalid_request_error"
            assert error["code"] is not None
    elif answer.headers["content-type"].startswith("text/event-stream"):
        report = check_stream(answer.data, api=APIS[path])
        assert report.accepted, str(report)
        assert answer.data.endswith(b"data: [DONE]\n\n")
        assert may_fail or "failed" not in report.outcome
    else:
        assert answer.headers["content-type"] == "application/json"
        BODIES[path](json.loads(answer.data))


def refusal(answer: Answer) -> dict[str, Any]:
    """The error object, checked to be exactly the envelope."""
    assert answer.headers["content-type"] == "application/json"
    body = json.loads(answer.data)
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    for key in ("param", "code"):
        assert error[key] is None or isinstance(error[key], str)
    assert not LEAK.search(error["message"]), error["message"]
    return error


def _generated(path: str) -> Callable[[Any], None]:
    def body(value: Any) -> None:
        # Echoed as it was sent, and the SDK knows only the values that OpenAI offers.
        TYPES[path].validate_python({**value, "prompt_cache_retention": None})
        usage = value["usage"]
        inputs, outputs = (
            ("input_tokens", "output_tokens")
            if APIS[path] == "responses"
            else ("prompt_tokens", "completion_tokens")
        )
        assert usage["total_tokens"] == usage[inputs] + usage[outputs]

    return body


def _counted(value: Any) -> None:
    assert list(value) == ["object", "input_tokens"]
    assert value["object"] == "response.input_tokens"
    assert type(value["input_tokens"]) is int


def _tokenized(value: Any) -> None:
    assert {"count", "max_model_len", "tokens"} <= value.keys()
    assert value["count"] == len(value["tokens"])
    strings = value.get("token_strs")
    assert strings is None or len(strings) == value["count"]


def _detokenized(value: Any) -> None:
    assert list(value) == ["prompt"]
    assert isinstance(value["prompt"], str)


BODIES: Mapping[str, Callable[[Any], None]] = {
    **{path: _generated(path) for path in APIS},
    "/v1/responses/input_tokens": _counted,
    "/tokenize": _tokenized,
    "/detokenize": _detokenized,
}
