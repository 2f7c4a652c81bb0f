"""The questions: every kind of request there is, and clients that leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from benchmarks.mixed_load.texts import Texts

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
LONG, SHORT = 200, 40
"""Tokens of an answer."""


@attrs.frozen
class Ask:
    """A request; ``leaves_after`` are the bytes of the answer after which its client closes the
    connection (0: as soon as the request is sent and taken), None where it stays."""

    kind: str
    path: str
    body: Mapping[str, Any]
    leaves_after: int | None = None

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return bool(self.body.get("stream"))


def asks(texts: Texts, seed: int) -> Iterator[Ask]:
    """One round. What is drawn by chance depends on ``seed`` and on nothing else."""
    yield from _stay(texts, seed)
    endless = {"ignore_eos": True, "temperature": 0}
    streamed = {**endless, "stream": True}
    yield Ask("leaves a stream", CHAT, {**_said(texts.story), **streamed}, 400)
    yield Ask("leaves a stream", RESPONSES, {"input": texts.story, **streamed}, 2_000)
    raw = {"prompt": texts.raw_story, "max_tokens": 1_000, **endless}
    yield Ask("leaves a stream", COMPLETIONS, {**raw, "n": 2, "stream": True}, 300)
    yield Ask("leaves a body", COMPLETIONS, raw, 0)
    yield Ask("leaves while it is read", CHAT, {**_said(texts.long), **streamed}, 0)


def _stay(texts: Texts, seed: int) -> Iterator[Ask]:
    greedy = {"temperature": 0, "max_tokens": SHORT}
    streamed = {"stream": True}
    chance = {"temperature": 0.8, "top_p": 0.95, "seed": seed, "max_tokens": SHORT}
    yield Ask("long prompt", CHAT, {**_said(texts.long), **greedy})
    yield Ask("long prompt", CHAT, {**_said(texts.long), **greedy, **streamed})
    yield Ask("long prompt", RESPONSES, {"input": texts.long, **_responses(greedy), **streamed})
    for index, text in enumerate(texts.short):
        given = {**_said(text), **greedy}
        yield Ask("short chat", CHAT, {**given, **streamed} if index % 2 else given)
    yield Ask("short answer", RESPONSES, {"input": texts.short[0], **_responses(greedy)})
    yield Ask("n = 4", CHAT, {**_said(texts.short[1]), **chance, "n": 4, **streamed})
    yield Ask("n = 4", COMPLETIONS, {"prompt": texts.raw[0], **chance, "n": 4})
    yield Ask("prompts", COMPLETIONS, {"prompt": list(texts.raw), **greedy, **streamed})
    yield Ask("seeded", RESPONSES, {"input": texts.short[2], **_responses(chance), **streamed})
    form = {"name": "answer", "schema": texts.schema, "strict": True}
    chat_form = {"type": "json_schema", "json_schema": form}
    yield Ask("JSON schema", CHAT, {**_said(texts.form), **greedy, "response_format": chat_form})
    text_form = {"format": {"type": "json_schema", **form}}
    yield Ask("JSON schema", RESPONSES, {
        "input": texts.form, **_responses(greedy), "text": text_form, **streamed,
    })  # fmt: skip
    long = {"temperature": 0, "max_tokens": LONG}
    yield Ask("long answer", COMPLETIONS, {"prompt": texts.raw_story, **long, **streamed})
    yield Ask("long answer", CHAT, {**_said(texts.story), **long, "logprobs": True, **streamed})


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _responses(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The limit by its name on that endpoint."""
    return {"max_output_tokens" if key == "max_tokens" else key: fields[key] for key in fields}
