"""What rides on commands and events: token counts and log probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from responsory.checks import count, log_probability, valid
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

    input_tokens: int = attrs.field(validator=valid(count))
    output_tokens: int = attrs.field(validator=valid(count))
    cached_tokens: int = attrs.field(default=0, validator=valid(count))
    reasoning_tokens: int = attrs.field(default=0, validator=valid(count))
    cache_write_tokens: int = attrs.field(default=0, validator=valid(count))


@immutable
class TopLogprob:
    """One alternative at a token's place: its text, natural log probability and bytes. What is no
    finite number is minus infinity."""

    token: str
    logprob: float = attrs.field(converter=log_probability)
    data: bytes


@immutable
class Logprob:
    """One token that was drawn: its text, natural log probability and bytes; ``top`` is best
    first. A token inside a character has bytes that are no text of their own."""

    token: str
    logprob: float = attrs.field(converter=log_probability)
    data: bytes
    top: tuple[TopLogprob, ...] = ()
