"""A vocabulary as read from a model's files, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import tokenizers


@attrs.frozen(eq=False, kw_only=True)
class Vocabulary:
    """Tokens, their bytes, and which of them begin and end a text."""

    encoder: tokenizers.Tokenizer = attrs.field(repr=False)
    token_bytes: Sequence[bytes] = attrs.field(repr=False)
    """id → bytes. A special token has its text's bytes, an id the vocabulary skips has none."""
    bos_id: int | None
    eos_ids: frozenset[int]
