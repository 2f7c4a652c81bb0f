"""What a model says in one answer, and the ways in which the answer ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from api.sse import chunks, events
from wire.told import Told

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "deep": {"b": [2]}}}\n</tool_call>'
BARE = '<tool_call>\n{"name": "ping"}\n</tool_call>'
SAID: Mapping[str, str] = {
    "text": "A system message, a user message.",
    "nothing": "",
    "reasoning": "<think>why not</think>so it is",
    "reasoning alone": "<think>why not",
    "calls": f"Both it is.\n{CALL}\n{BARE}",
    "reasoning and a call": f"<think>why</think>{CALL}",
    "lookalike": "2 < 3, <tool_cal and <thin",
}
TOOLS: Mapping[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": name}} for name in ("add", "ping")],
    "responses": [{"type": "function", "name": name} for name in ("add", "ping")],
}


@attrs.frozen
class Story:
    """``ends``: by itself (``stop``), cut before its last token (``length``), or ``error``."""

    name: str
    ends: str

    def __str__(self) -> str:
        return f"{self.name}-{self.ends}"

    @property
    def cut(self) -> bool:
        return self.ends != "stop"

    async def tell(
        self, app: Told, endpoint: str, *, stream: bool, grouped: int = 1, **fields: Any
    ) -> Any:
        """The answer in which the model says it."""
        says = SAID[self.name]
        limit = {"chat": "max_tokens", "completions": "max_tokens"}
        tokens = len(app.prompter.text(says, add_special_tokens=False))
        most = max(1, tokens - 1) if self.ends == "length" else tokens + 1
        return await app.post(
            endpoint,
            500 if self.ends == "error" and not stream else 200,
            says=says,
            grouped=grouped,
            fails=self.ends == "error",
            stream=stream,
            request_id="t",
            **{limit.get(endpoint, "max_output_tokens"): most},
            **({"tools": TOOLS[endpoint]} if endpoint in TOOLS else {}),
            **fields,
        )

    async def events(self, app: Told, **fields: Any) -> list[dict[str, Any]]:
        """The events of the Responses stream."""
        data = await self.tell(app, "responses", stream=True, **fields)
        return [value for _, value in events(data.encode())[:-1]]

    async def chunks(self, app: Told, endpoint: str, **fields: Any) -> list[dict[str, Any]]:
        """The chunks of the stream of chat or completions."""
        data: str = await self.tell(app, endpoint, stream=True, **fields)
        return chunks(data.encode())


STORIES = [Story(name, ends) for name in SAID for ends in ("stop", "length", "error")
           if SAID[name] or ends != "length"]  # fmt: skip


def settled(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body without the times of its making."""
    times = ("created", "created_at", "completed_at")
    return {key: value for key, value in json.loads(json.dumps(body)).items() if key not in times}
