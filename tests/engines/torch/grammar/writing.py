"""Texts drawn at random from what a form leaves, without a model."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache

import attrs
import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.compiler import form_of
from antiphon.engines.torch.grammar.state import Grammar, begun
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.prompting.tokenizer import load_tokenizer
from known_replies import FILES

EOS = 0
"""A control token of the fixture model's vocabulary. Which one ends texts is for a test to say."""


@cache
def vocabulary(*markers: str) -> GrammarVocabulary:
    """The fixture model's 768 tokens, and ``markers`` as control tokens behind them."""
    table = load_tokenizer(FILES).table()
    assert EOS in table.special
    added = range(768, 768 + len(markers))
    tokens = [*table.tokens[:768], *(marker.encode() for marker in markers)]
    table = attrs.evolve(table, tokens=tokens, special=table.special | {*added})
    return GrammarVocabulary.of(table, len(tokens), frozenset({EOS}))


def a_grammar(
    kind: str,
    text: str = "",
    *,
    strict: bool = True,
    opener: str = "",
    closer: str = "",
    barred: Sequence[str] = (),
    budget: int | None = None,
    markers: Sequence[str] = (),
) -> Grammar:
    """At the start of its text. Raises ``GrammarRefused``."""
    spec = GrammarSpec(
        kind=kind,  # type: ignore[arg-type]
        text=text,
        strict=strict,
        opener=opener,
        closer=closer,
        barred=json.dumps(barred),
        budget=budget,
    )
    known = vocabulary(*markers)
    matcher = None if kind == "any" else _compiled(form_of(spec), known).deep_copy()
    return begun(matcher, spec, known)


@cache
def _compiled(spec: GrammarSpec, known: GrammarVocabulary) -> LLMatcher:
    return compiled(spec, known)


def allowed(grammar: Grammar) -> list[int]:
    """The ids that may be drawn next."""
    words = (len(grammar.vocabulary.tokens) + 31) // 32
    row: NDArray[np.int32] = np.full(words, -1, dtype=np.int32)
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
        text += grammar.vocabulary.spelt(token)
    return text, False


def takes(grammar: Grammar, text: str) -> bool:
    """Whether the form allows the text, token by token as the model would be asked."""
    for token in grammar.vocabulary.guide.tokenize_str(text):
        if token not in allowed(grammar) or not grammar.advance(token):
            return False
    return True
