"""A vocabulary as read from a model's files, whatever their format."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import tokenizers


@attrs.frozen(eq=False, kw_only=True)
class Vocabulary:
    """Tokens and their bytes."""

    encoder: tokenizers.Tokenizer = attrs.field(repr=False)
    token_bytes: Sequence[bytes] = attrs.field(repr=False)
    """id → bytes. A special token has its text's bytes, an id the vocabulary skips has none."""
