"""Questions to the fixture model on the three endpoints, whole and streamed, and what came back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import attrs
from quart.typing import TestClientProtocol

from antiphon.api.service import Service
from known_replies import REPLIES, KnownReply
from responsory.testing.folds import fold_chat, fold_completions, fold_responses

Endpoint: TypeAlias = Literal["chat", "completions", "responses"]
ENDPOINTS: tuple[Endpoint, ...] = ("chat", "completions", "responses")
PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
}
LIMITS = {
    "chat": "max_completion_tokens",
    "completions": "max_tokens",
    "responses": "max_output_tokens",
}
LONGEST = 400
"""Tokens; every reply is shorter."""
ANSWERABLE = {name: known for name, known in REPLIES.items() if known.tools is None}
"""Replies that every endpoint can be asked for."""
PARIS = REPLIES["chat-5.1"]


@attrs.frozen
class Answer:
    """One choice of what came back, in one form for all endpoints."""

    text: str
    reasoning: str
    finish: str
    """As chat says it: ``stop`` or ``length``."""


@attrs.frozen
class Usage:
    """Tokens of a call."""

    prompt: int
    completion: int
    cached: int


class Asking:
    """A served application and a client of it."""

    def __init__(self, service: Service, client: TestClientProtocol) -> None:
        self.service = service
        self.client = client

    async def body(self, endpoint: Endpoint, status: int = 200, **fields: Any) -> dict[str, Any]:
        """The unary body of a call."""
        response = await self.client.post(PATHS[endpoint], json={"model": "tinychat", **fields})
        body: dict[str, Any] = await response.get_json()
        assert response.status_code == status, body
        return body

    async def frames(self, endpoint: Endpoint, **fields: Any) -> bytes:
        """The bytes of a stream, with a usage chunk where that has to be asked for."""
        usage = {} if endpoint == "responses" else {"stream_options": {"include_usage": True}}
        given = {"model": "tinychat", "stream": True, **usage, **fields}
        response = await self.client.post(PATHS[endpoint], json=given)
        data = await response.get_data()
        assert response.status_code == 200, data
        assert isinstance(data, bytes)
        return data

    async def both(self, endpoint: Endpoint, **fields: Any) -> dict[str, Any]:
        """The unary body of a call, after its stream has been found to add up to the same.

        The clock and the ids are those of a call, so they are left out.
        """
        body = await self.body(endpoint, **fields)
        streamed = folded(endpoint, await self.frames(endpoint, **fields))
        unlike = list(differences(comparable(endpoint, streamed), comparable(endpoint, body)))
        assert not unlike, unlike
        return body

    async def greedily(
        self, endpoint: Endpoint, known: KnownReply, **fields: Any
    ) -> dict[str, Any]:
        """The body, equal to the stream, of a known question asked without chance."""
        return await self.both(
            endpoint, **{**question(endpoint, known), "temperature": 0, **fields}
        )


def question(endpoint: Endpoint, known: KnownReply) -> dict[str, Any]:
    """The fields that ask for a reply."""
    limit = {LIMITS[endpoint]: LONGEST}
    if endpoint == "completions":
        return {"prompt": known.prompt, **limit}
    told = {"chat_template_kwargs": known.template_kwargs} if known.thinking else {}
    return {"messages" if endpoint == "chat" else "input": list(known.messages), **told, **limit}


def folded(endpoint: Endpoint, data: bytes) -> dict[str, Any]:
    """A stream put together by the law's own clients."""
    if endpoint == "responses":
        return fold_responses([data])
    fold = fold_chat if endpoint == "chat" else fold_completions
    result = fold([data])
    assert result["error"] is None
    return result


def comparable(endpoint: Endpoint, body: dict[str, Any]) -> dict[str, Any]:
    """What must be equal in a body and in a stream's sum: the second finds more of its prompt
    cached than the first, and all else is the same."""
    spent = attrs.evolve(usage(endpoint, body), cached=0)
    if endpoint == "responses":
        output = [{**item, "id": ""} for item in body["output"]]
        kept = ("status", "incomplete_details", "error", "temperature", "text")
        return {**{key: body[key] for key in kept}, "output": output, "usage": spent}
    choices = body["choices"]
    listed = choices if isinstance(choices, list) else [choices[index] for index in sorted(choices)]
    return {"usage": spent, "choices": [_choice(endpoint, one) for one in listed]}


def _choice(endpoint: Endpoint, choice: dict[str, Any]) -> dict[str, Any]:
    logprobs = choice["logprobs"]
    if isinstance(logprobs, dict) and "content" in logprobs:
        logprobs = logprobs["content"]
    ends = {"finish_reason": choice["finish_reason"], "stop_reason": choice.get("stop_reason")}
    if endpoint == "completions":
        return {"text": choice["text"], "logprobs": logprobs, **ends}
    message = choice["message"]
    said = {key: message.get(key) or "" for key in ("content", "reasoning_content", "refusal")}
    return {**said, "logprobs": logprobs, **ends}


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Where two values are not the same. Numbers of two calls differ in their last digits: what
    was found in the cache was read in another step."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        for key in left:
            yield from differences(left[key], right[key], f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, pair in enumerate(zip(left, right, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif isinstance(left, float) and isinstance(right, float):
        if not math.isclose(left, right, rel_tol=1e-3, abs_tol=1e-3):
            yield f"{path}: {left} and {right}"
    elif left != right:
        yield f"{path}: {left!r} and {right!r}"


def answers(endpoint: Endpoint, body: dict[str, Any]) -> list[Answer]:
    """The choices of a unary body."""
    if endpoint == "responses":
        return [_response(body)]
    return [
        Answer(
            choice["text"] if endpoint == "completions" else choice["message"]["content"] or "",
            "" if endpoint == "completions" else choice["message"].get("reasoning_content") or "",
            choice["finish_reason"],
        )
        for choice in body["choices"]
    ]


def _response(body: dict[str, Any]) -> Answer:
    told = {"message": "", "reasoning": ""}
    for item in body["output"]:
        told[item["type"]] += "".join(part["text"] for part in item["content"] or ())
    cut = body["status"] == "incomplete"
    assert cut == (body["incomplete_details"] == {"reason": "max_output_tokens"})
    assert cut or body["status"] == "completed"
    return Answer(told["message"], told["reasoning"], "length" if cut else "stop")


def usage(endpoint: Endpoint, body: dict[str, Any]) -> Usage:
    """The numbers of a body's usage, which add up."""
    told = body["usage"]
    names = ("input", "output") if endpoint == "responses" else ("prompt", "completion")
    prompt, completion = (told[f"{name}_tokens"] for name in names)
    assert told["total_tokens"] == prompt + completion
    details = told.get(f"{names[0]}_tokens_details") or {}
    return Usage(prompt, completion, details.get("cached_tokens") or 0)


def the_answer(endpoint: Endpoint, body: dict[str, Any]) -> Answer:
    """The only choice."""
    (answer,) = answers(endpoint, body)
    return answer
