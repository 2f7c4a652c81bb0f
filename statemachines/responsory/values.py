"""What rides on commands and events: token counts, token ids and log probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from responsory.checks import (
    count,
    counts,
    log_probability,
    optional,
    optional_log_probability,
    valid,
)
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
class Tokens:
    """What a delta tells of its tokens, where a request asked for it: the ``ids`` that are told
    with it and not before, and ``output``, the output tokens of the response so far.

    Ids count in the order in which the model drew them, those of markers and of what is not shown
    included, so a delta can tell more ids than its own text has tokens, or none.
    """

    ids: tuple[int, ...] = attrs.field(validator=valid(counts))
    output: int = attrs.field(validator=valid(count))


@immutable
class TopLogprob:
    """One alternative at a token's place: its text, natural log probability and bytes. What is no
    finite number is minus infinity. ``id`` only where a request asked for tokens as ids."""

    token: str
    logprob: float = attrs.field(converter=log_probability)
    data: bytes
    id: int | None = attrs.field(default=None, validator=valid(optional(count)))


@immutable
class Logprob:
    """One token that was drawn: its text, natural log probability and bytes; ``top`` is best
    first. A token inside a character has bytes that are no text of their own, and one that is not
    shown has none. ``logprob`` is None for the first token of an echoed prompt alone: nothing
    stands before it. ``id`` only where a request asked for tokens as ids."""

    token: str
    logprob: float | None = attrs.field(converter=optional_log_probability)
    data: bytes
    top: tuple[TopLogprob, ...] = ()
    id: int | None = attrs.field(default=None, validator=valid(optional(count)))
