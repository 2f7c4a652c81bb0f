"""A vocabulary as an engine may need it: what each token spells, and how text is cut into tokens.

Engines work with ids and know no tokenizer. What holds a text to a form has to know what a token
spells all the same, and the engine may run in a process of its own: so it is handed over as text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs


@attrs.frozen(eq=False, kw_only=True)
class TokenTable:
    """Tokens, and the tokenizer that cuts text into them."""

    tokens: Sequence[bytes] = attrs.field(repr=False)
    """id → bytes; empty for an id that spells nothing."""
    special: frozenset[int]
    """Control tokens: turn markers and the like, which no text spells."""
    tokenizer: str = attrs.field(repr=False)
    """A ``tokenizer.json``, as the ``tokenizers`` library reads and writes it."""

    def to_text(self) -> str:
        """All of it as JSON; bytes are the characters U+0000 to U+00FF."""
        return json.dumps(
            {
                "tokens": [token.decode("latin-1") for token in self.tokens],
                "special": sorted(self.special),
                "tokenizer": self.tokenizer,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_text(cls, text: str) -> TokenTable:
        """What ``to_text`` wrote."""
        parts = json.loads(text)
        return cls(
            tokens=[token.encode("latin-1") for token in parts["tokens"]],
            special=frozenset(parts["special"]),
            tokenizer=parts["tokenizer"],
        )
