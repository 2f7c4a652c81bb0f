"""What rides on chunks because a request asked for it: token ids, counts, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from responsory.check.judge import brief
from responsory.check.padding import Padding
from responsory.check.shapes import CHUNK_USAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from responsory.check.judge import Judge

PROMPT = "prompt_token_ids"


class Asked:
    """What the chunks of one call have of it so far."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._padding = Padding(judge)
        self._told: bool | None = None
        """Whether choices have token ids."""
        self._counts: dict[str, int] = dict.fromkeys(CHUNK_USAGE, 0)

    def take(self, data: Mapping[str, Any]) -> None:
        """A chunk. Raises RuleBroken."""
        if data["choices"]:
            self._padding.take(data)
        elif "obfuscation" in data:
            self._judge.broken("obfuscation-key", "`obfuscation` on a chunk without choices")
        usage = data.get("usage")
        if usage is not None:
            self._count(usage)

    def tell(self, choice: Mapping[str, Any], prompt: Mapping[str, Any], *, first: bool) -> None:
        """One choice of a chunk. ``prompt`` is where the ids of the prompt are, ``first`` whether
        they are due."""
        told = "token_ids" in choice
        if self._told not in (None, told):
            found, due = ("there", "absent") if told else ("absent", "there")
            self._judge.broken("token-ids-key", f"`token_ids` {found}", f"`token_ids` {due}")
        self._told = told
        if (PROMPT in prompt) != (told and first):
            found, due = ("there", "absent") if PROMPT in prompt else ("absent", "there")
            self._judge.broken("token-ids-key", f"`{PROMPT}` {found}", f"`{PROMPT}` {due}")

    def _count(self, usage: Mapping[str, Any]) -> None:
        for name, least in self._counts.items():
            found = usage[name]
            if found < least:
                self._judge.broken("usage-grows", f"{name} {brief(found)}", f"{least} or more")
            self._counts[name] = found
