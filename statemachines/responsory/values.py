"""What rides on commands and events: token counts and log probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""Anything that has a JSON form."""

Phase: TypeAlias = Literal["commentary", "final_answer"]
"""What a message is for, where the model family itself says so."""

ItemType: TypeAlias = Literal["message", "reasoning", "function_call", "custom_tool_call"]
PartType: TypeAlias = Literal["output_text", "refusal", "reasoning_text"]
ItemStatus: TypeAlias = Literal["completed", "incomplete"]
"""How an item ended."""


@immutable
class Usage:
    """Token counts of one response. ``cached_tokens`` and ``cache_write_tokens`` are parts of
    ``input_tokens``; ``reasoning_tokens`` is a part of ``output_tokens``."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0


@immutable
class TopLogprob:
    """One alternative at a token's place: its text, natural log probability and bytes."""

    token: str
    logprob: float
    data: bytes


@immutable
class Logprob:
    """One token that was drawn: its text, natural log probability and bytes; ``top`` is best
    first. A token inside a character has bytes that are no text of their own."""

    token: str
    logprob: float
    data: bytes
    top: tuple[TopLogprob, ...] = ()
