"""One client: it asks, reads to the end or leaves, and says what it got."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import httpx
from benchmarks.mixed_load.asks import Ask

DONE = "[DONE]"
PATIENCE_S = 0.05
"""How long a client waits for a body before it leaves."""


@attrs.frozen(kw_only=True)
class Told:
    """What a client got; ``trouble`` says what was wrong with it, and is empty otherwise."""

    choices: tuple[tuple[str, str], ...] = ()
    """(text, finish reason) of each choice."""
    tokens: int = 0
    """Of all choices, by the usage."""
    seconds: float = 0.0
    left: bool = False
    """The client went before the end."""
    trouble: str = ""


async def tell(client: httpx.AsyncClient, model: str, ask: Ask) -> Told:
    """Ask and read. Nothing is raised for what goes wrong: it is told."""
    body: dict[str, Any] = {"model": model, **ask.body}
    if ask.streams and not ask.path.endswith("responses"):
        body["stream_options"] = {"include_usage": True}
    began = time.monotonic()
    try:
        told = await _ask(client, ask, body)
    except (httpx.HTTPError, ValueError, KeyError, IndexError) as failure:
        told = Told(trouble=repr(failure))
    return attrs.evolve(told, seconds=time.monotonic() - began)


async def _ask(client: httpx.AsyncClient, ask: Ask, body: dict[str, Any]) -> Told:
    if not ask.streams:
        if ask.leaves_after is not None:
            try:
                await client.post(ask.path, json=body, timeout=PATIENCE_S)
            except httpx.TimeoutException:
                return Told(left=True)
        response = await client.post(ask.path, json=body)
        if response.status_code != 200:
            return Told(trouble=f"{response.status_code}: {response.text[:200]}")
        return _of_body(response.json())
    async with client.stream("POST", ask.path, json=body) as response:
        if response.status_code != 200:
            return Told(trouble=f"{response.status_code}: {(await response.aread())[:200]!r}")
        if ask.leaves_after == 0:
            return Told(left=True)
        data = b""
        async for piece in response.aiter_bytes():
            data += piece
            if ask.leaves_after is not None and len(data) >= ask.leaves_after:
                return Told(left=True)
    return _of_stream(data)


def _of_body(body: dict[str, Any]) -> Told:
    if "output" in body:
        return Told(choices=(_of_response(body),), tokens=body["usage"]["output_tokens"])
    choices = tuple(
        (_text(choice.get("message", choice)), str(choice["finish_reason"]))
        for choice in body["choices"]
    )
    return Told(choices=choices, tokens=body["usage"]["completion_tokens"])


def _of_stream(data: bytes) -> Told:
    """What the frames add up to; it is trouble if they do not end exactly once."""
    events = list(_events(data))
    if events.count(DONE) != 1 or events[-1] != DONE:
        return Told(trouble=f"{events.count(DONE)} ends of the stream: {data[-200:]!r}")
    ends = [one for one in events[:-1] if one.get("type", "").startswith("response.")]
    return _of_response_events(ends) if ends else _of_chunks(events[:-1])


def _of_response_events(events: Sequence[dict[str, Any]]) -> Told:
    ends = [
        one
        for one in events
        if one["type"] in ("response.completed", "response.incomplete", "response.failed")
    ]
    if len(ends) != 1 or ends[0] is not events[-1]:
        return Told(trouble=f"{len(ends)} terminal events")
    deltas = (one["delta"] for one in events if one["type"] == "response.output_text.delta")
    told = _of_body(ends[0]["response"])
    if "".join(deltas) != told.choices[0][0]:
        return Told(trouble="the deltas are not the text")
    return told


def _of_chunks(chunks: Sequence[dict[str, Any]]) -> Told:
    texts: dict[int, str] = {}
    ends: dict[int, str] = {}
    tokens = 0
    for chunk in chunks:
        if "error" in chunk:
            return Told(trouble=f"an error in the stream: {chunk['error']}")
        tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
        for choice in chunk["choices"]:
            index = choice["index"]
            if index in ends:
                return Told(trouble=f"choice {index} goes on after its end")
            texts[index] = texts.get(index, "") + _text(choice.get("delta", choice))
            if choice["finish_reason"]:
                ends[index] = choice["finish_reason"]
    if texts.keys() != ends.keys() or not ends:
        return Told(trouble=f"{len(texts)} choices and {len(ends)} ends")
    return Told(choices=tuple((texts[index], ends[index]) for index in sorted(ends)), tokens=tokens)


def _of_response(body: dict[str, Any]) -> tuple[str, str]:
    parts = (part for item in body["output"] for part in item.get("content") or ())
    return "".join(part["text"] for part in parts), body["status"]


def _text(said: dict[str, Any]) -> str:
    return str(said.get("content") or said.get("text") or "")


def _events(data: bytes) -> Iterator[Any]:
    for frame in data.decode().split("\n\n"):
        for line in frame.split("\n"):
            if line.startswith("data: "):
                value = line.removeprefix("data: ")
                yield value if value == DONE else json.loads(value)
