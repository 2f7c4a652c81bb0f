"""Texts drawn at random from what a form leaves, without a model."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
from numpy.typing import NDArray

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.state import Grammar
from antiphon.engines.torch.grammar.thought import Thought
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.prompting.tokenizer import load_tokenizer
from known_replies import FILES

EOS = 0
"""A control token of the fixture model's vocabulary. Which one ends texts is for a test to say."""


@cache
def vocabulary() -> GrammarVocabulary:
    """The fixture model's 768 tokens."""
    table = load_tokenizer(FILES).table()
    assert EOS in table.special
    return GrammarVocabulary.of(table, 768, frozenset({EOS}))


def a_grammar(
    kind: str, text: str = "", *, strict: bool = True, opener: str = "", closer: str = ""
) -> Grammar:
    """At the start of its text. Raises ``GrammarRefused``."""
    spec = GrammarSpec(kind=kind, text=text, strict=strict, opener=opener, closer=closer)  # type: ignore[arg-type]
    thought = None
    if spec.closer:
        ids = vocabulary().ids
        thought = Thought(spec.opener.encode(), spec.closer.encode(), ids)
    return Grammar(compiled(spec, vocabulary()), vocabulary(), thought)


def allowed(grammar: Grammar) -> list[int]:
    """The ids that may be drawn next."""
    row: NDArray[np.int32] = np.full(24, -1, dtype=np.int32)
    grammar.fill(row)
    assert not grammar.error
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return [int(token) for token in np.flatnonzero(bits)]


def write(grammar: Grammar, seed: int, most: int = 2_000) -> tuple[bytes, bool]:
    """A text of random tokens, all as likely; and whether it ended."""
    chance, text = random.Random(seed), b""
    for _ in range(most):
        if grammar.finished:
            return text, True
        token = chance.choice(allowed(grammar))
        assert grammar.advance(token), grammar.error
        if token == EOS:
            return text, True
        text += vocabulary().spelt(token)
    return text, False


def takes(grammar: Grammar, text: str) -> bool:
    """Whether the form allows the text, token by token as the model would be asked."""
    for token in vocabulary().guide.tokenize_str(text):
        if token not in allowed(grammar) or not grammar.advance(token):
            return False
    return True
