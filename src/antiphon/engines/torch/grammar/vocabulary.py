"""What llguidance has to know of the model's tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
import tokenizers
from llguidance import LLTokenizer, TokenizerWrapper

from antiphon.models.token_table import TokenTable


@attrs.frozen(eq=False, kw_only=True)
class GrammarVocabulary:
    """Tokens as forms see them."""

    guide: LLTokenizer
    """As llguidance sees them."""
    tokens: Sequence[bytes]
    """id → bytes, control tokens as they are spelt."""
    ids: Mapping[bytes, int]
    """The way back; the lowest id among equals."""
    eos_ids: frozenset[int]
    table: TokenTable
    """What it was made of: other processes are given that."""

    @classmethod
    def of(cls, table: TokenTable, vocab_size: int, eos_ids: frozenset[int]) -> GrammarVocabulary:
        """For ids below ``vocab_size``, the width of the logits.

        ``eos_ids``, of which there is at least one, are what may be drawn where a text may end. The
        bytes are those that the server makes its text of, so the two cannot disagree.
        """
        # The logits may be wider than the vocabulary, and llguidance counts the tokens themselves.
        unused = [b""] * max(vocab_size - len(table.tokens), 0)
        tokens = [*table.tokens[:vocab_size], *unused]
        wrapped = TokenizerWrapper(_Cutter(table, tokens, min(eos_ids)))
        return cls(
            guide=LLTokenizer(wrapped, n_vocab=vocab_size, eos_token=sorted(eos_ids)),
            tokens=tokens,
            ids=_ids(enumerate(tokens)),
            eos_ids=eos_ids,
            table=table,
        )

    def spelt(self, token: int) -> bytes:
        """The bytes of a token; none of an id that no token has."""
        return self.tokens[token] if token < len(self.tokens) else b""


def _ids(tokens: Iterable[tuple[int, bytes]]) -> dict[bytes, int]:
    return {spelt: token for token, spelt in reversed([*tokens]) if spelt}


class _Cutter:
    """Text to tokens, under the names that llguidance asks for.

    Where a form leaves one way to go on, llguidance masks all but the tokens that the tokenizer
    itself would cut that text into, so that the model reads what it is used to.
    """

    def __init__(self, table: TokenTable, tokens: Sequence[bytes], eos_id: int) -> None:
        self.eos_token_id = eos_id
        self.bos_token_id = None
        self.tokens = tokens
        self.special_token_ids = sorted(token for token in table.special if token < len(tokens))
        self._encoder = tokenizers.Tokenizer.from_str(table.tokenizer)
        self._encoder.no_truncation()
        self._encoder.no_padding()
        # The spelling of a control token is text here like any other.
        self._encoder.encode_special_tokens = True
        self._ids = _ids(pair for pair in enumerate(tokens) if pair[0] not in table.special)
        self._longest = max(map(len, self._ids), default=0)

    def __call__(self, data: bytes) -> list[int]:
        try:
            ids = self._encoder.encode(data.decode(), add_special_tokens=False).ids
        except UnicodeDecodeError:
            return self._greedily(data)
        # A tokenizer may put a space before a text, or change it otherwise.
        known = all(index < len(self.tokens) for index in ids)
        same = known and b"".join(self.tokens[index] for index in ids) == data
        return ids if same else self._greedily(data)

    def _greedily(self, data: bytes) -> list[int]:
        """The longest token each time, as far as there is one."""
        found, at = [], 0
        while at < len(data):
            ends = range(min(len(data), at + self._longest), at, -1)
            end = next((end for end in ends if data[at:end] in self._ids), None)
            if end is None:
                break
            found.append(self._ids[data[at:end]])
            at = end
        return found
