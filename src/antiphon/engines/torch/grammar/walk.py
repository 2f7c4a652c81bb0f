"""Texts written at random, to see whether a form can be followed."""

from __future__ import annotations

import random
import time

from llguidance import LLMatcher

from antiphon.engines.torch.grammar.refused import GrammarRefused
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary

TOKENS = 64
"""Of each text."""
LONGEST_S = 0.6
"""Processor time for all texts together."""
LEAST = 12
"""Tokens that must have been written by then: the steps of all wait for the slowest mask."""


def walk(matcher: LLMatcher, vocabulary: GrammarVocabulary) -> None:
    """Raises ``GrammarRefused`` where the library gives up. The matcher is left at its start.

    One text takes the longest token each time, which gets furthest, the others any.
    """
    ending = sum(1 << token for token in vocabulary.eos_ids)
    until, written = time.process_time() + LONGEST_S, 0
    for seed in range(3):
        chance, trial = random.Random(seed), matcher.deep_copy()  # noqa: S311 - no secret
        for _ in range(TOKENS):
            if trial.is_stopped():
                break
            if time.process_time() > until:
                if written < LEAST:
                    raise GrammarRefused("it takes too long to be followed")
                return
            mask = int.from_bytes(trial.compute_bitmask(), "little") & ~ending
            if not mask:
                break
            drawn = [_any(mask, chance) for _ in range(1 if seed else 32)]
            trial.consume_token(max(drawn, key=lambda token: len(vocabulary.spelt(token))))
            written += 1
        if trial.is_error():
            raise GrammarRefused(trial.get_error())


def _any(mask: int, chance: random.Random) -> int:
    """A token of the mask, by chance."""
    above = mask >> (start := chance.randrange(mask.bit_length()))
    return start + (above & -above).bit_length() - 1
