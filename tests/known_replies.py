"""The fixture model and its replies: what it says, word for word, when it is asked greedily."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from antiphon.models.files import ModelFiles

FOLDER = Path(__file__).parents[1] / "fixtures" / "models" / "tinychat"
FILES = ModelFiles("tinychat", "hf", FOLDER)


@attrs.frozen
class KnownReply:
    """One line of ``replies.json``."""

    name: str
    """Its kind, the number of the conversation, and that of the reply in it: ``chat-3.1``."""
    kind: str
    messages: Sequence[Mapping[str, Any]]
    thinking: bool
    prompt: str
    """The messages as the model's template writes them."""
    reply: str
    """Thoughts and calls are part of it, with their markers."""
    tools: Sequence[Mapping[str, Any]] | None = None

    @property
    def template_kwargs(self) -> dict[str, Any]:
        """What the template has to be told beside messages and tools."""
        return {"enable_thinking": True} if self.thinking else {}


REPLIES = {
    line["name"]: KnownReply(**line)
    for line in json.loads((FOLDER / "replies.json").read_text(encoding="utf-8"))
}
"""By name, in the order of the file."""
