"""The names of reasoning in chat: of a delta, and of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning", "both"]
"""``reasoning_content`` is what most servers and clients say, ``reasoning`` what newer ones do."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "both": ("reasoning_content", "reasoning"),
}


def names_of(field: str) -> tuple[str, ...]:
    """The keys, in order. Raises ValueError."""
    if field not in NAMES:
        raise ValueError(f"no reasoning field `{field}`; known: {', '.join(NAMES)}")
    return NAMES[field]


def reasoning_keys(names: tuple[str, ...], value: str) -> str:
    """The members of a JSON object, each with the same ``value``, which is JSON."""
    return ",".join([f'"{name}":{value}' for name in names])
