"""The masks of a step: a row for each sequence, all ones where nothing is held."""

from __future__ import annotations

import numpy as np

from antiphon.engines.port import GrammarSpec
from antiphon.engines.torch.grammar.compilation import compiled
from antiphon.engines.torch.grammar.masks import Masks
from antiphon.engines.torch.grammar.state import Grammar
from antiphon.engines.torch.grammar.vocabulary import GrammarVocabulary
from antiphon.engines.torch.sequence import Sequence
from antiphon.prompting.tokenizer import load_tokenizer
from engines.torch.grammar.writing import EOS, a_grammar, allowed, vocabulary
from engines.torch.requests import a_request
from known_replies import FILES


def a_sequence(key: int, pattern: str | None) -> Sequence:
    sequence = Sequence.of(a_request(key), 100, frozenset({0}))
    if pattern is not None:
        sequence.grammar = a_grammar("regex", pattern)
    return sequence


def test_rows_are_in_order_and_free_ones_all_ones() -> None:
    patterns = [None, "[0-9]+", None, "[ab]{2}"]
    sequences = [a_sequence(key, pattern) for key, pattern in enumerate(patterns)]
    filled = Masks(768).begin(sequences).wait()
    assert filled is not None
    assert filled.shape == (4, 24)
    rows = filled.numpy()
    for row, pattern in zip(rows, patterns, strict=True):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        expected = range(768) if pattern is None else allowed(a_grammar("regex", pattern))
        assert np.flatnonzero(bits).tolist() == list(expected)


def test_without_a_form_there_are_no_masks() -> None:
    assert Masks(768).begin([a_sequence(1, None)]).wait() is None


def test_logits_that_are_wider_than_the_vocabulary() -> None:
    """No form leaves an id that spells nothing."""
    wide = GrammarVocabulary.of(load_tokenizer(FILES).table(), 770, frozenset({EOS}))
    sequence = a_sequence(1, None)
    spec = GrammarSpec(kind="regex", text="(?s:.)+")
    sequence.grammar = Grammar(compiled(spec, wide), wide)
    filled = Masks(770).begin([sequence]).wait()
    assert filled is not None
    assert filled.shape == (1, 25)
    bits = np.unpackbits(filled.numpy()[0].view(np.uint8), bitorder="little")
    drawn = np.flatnonzero(bits)
    assert 300 < len(drawn) < 768
    assert drawn.max() < 768


def test_tokens_are_cut_as_the_model_is_used_to() -> None:
    """A text that is forced leaves the token that the tokenizer itself would take."""
    guide = vocabulary().guide
    for text in ("hello", "the", "{"):
        assert allowed(a_grammar("choice", f'["{text}"]'))[0] == guide.tokenize_str(text)[0]
