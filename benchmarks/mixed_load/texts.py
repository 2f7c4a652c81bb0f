"""What the questions are about: the replies that the fixture model knows, or anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

REPLIES = "replies.json"
JOURNEY = (
    "On day {day} the travellers crossed a river, slept in a barn, and counted their money: "
    "there were {day} coins of silver left. The weather was fair and nobody was ill. "
)


@attrs.frozen(kw_only=True)
class Texts:
    """Of each kind one or a few; ``raw`` are prompts as they are, without a template."""

    short: Sequence[str]
    long: str
    story: str
    form: str
    schema: Mapping[str, Any]
    """Of the answer to ``form``."""
    raw: Sequence[str]
    raw_story: str


def _object(**properties: str) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


ANYTHING = Texts(
    short=(
        "What is the capital of France?",
        "Name three colours.",
        "Say hello in Spanish.",
        "What is 2 + 2?",
    ),
    long="".join(JOURNEY.format(day=day) for day in range(1, 16)) + "What did they count?",
    story="Tell me a long story about a fox and a lamp.",
    form="Describe a cat as a JSON object.",
    schema=_object(legs="integer", wild="boolean"),
    raw=("The capital of Japan is", "Once upon a time"),
    raw_story="Once upon a time there was a fox who",
)


def texts_of(model: str | None) -> Texts:
    """Those for the model: of the fixture model's folder, its own."""
    file = Path(model or "") / REPLIES
    if model is None or not file.is_file():
        return ANYTHING
    known = {line["name"]: line for line in json.loads(file.read_text(encoding="utf-8"))}

    def asked(name: str) -> str:
        (message,) = known[name]["messages"]
        return str(message["content"])

    return Texts(
        short=[asked(name) for name in ("chat-5.1", "unicode-2.1", "list-2.1", "code-2.1")],
        long=asked("reading-1.1"),
        story=asked("story-1.1"),
        form=asked("json-1.1"),
        schema=_object(animal="string", legs="integer", wild="boolean"),
        raw=[known[name]["prompt"] for name in ("chat-7.1", "turns-2.3", "unicode-1.1")],
        raw_story=known["story-3.1"]["prompt"],
    )
