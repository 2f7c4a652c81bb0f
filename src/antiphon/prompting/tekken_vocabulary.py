"""The vocabulary of a folder with ``tekken.json``: byte-level BPE whose merges are its ranks."""

from __future__ import annotations

from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, processors

from antiphon.errors import StartupError
from antiphon.models.tekken_file import BOS, read_tekken
from antiphon.prompting.merges import merges
from antiphon.prompting.pre_tokenizers import split_on
from antiphon.prompting.token_bytes import spell_byte_level
from antiphon.prompting.vocabulary import Vocabulary


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary in a ``tekken.json``. Raises ``StartupError`` for a file that is damaged."""
    found = read_tekken(path)
    spelt = [spell_byte_level(token) for token in found.tokens]
    vocab = {text: index for index, text in enumerate((*found.specials, *spelt))}
    if len(vocab) < len(found.specials) + len(spelt):
        twice = next(text for text in found.specials if vocab[text] >= len(found.specials))
        raise StartupError(f"{path}: special_tokens has {twice!r}, which vocab has as well.")
    ranks = {token: rank for rank, token in enumerate(found.tokens)}
    pairs = merges(found.tokens, ranks)
    encoder = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocab,
            merges=[(spelt[ranks[left]], spelt[ranks[right]]) for left, right in pairs],
            ignore_merges=True,
        )
    )
    try:
        encoder.pre_tokenizer = split_on(found.pattern)
    except Exception as failure:  # the library raises nothing narrower
        raise StartupError(f"{path}: config.pattern cannot be read: {failure}.") from failure
    encoder.decoder = decoders.ByteLevel()
    encoder.add_special_tokens([AddedToken(text, normalized=False) for text in found.specials])
    if BOS in found.specials:
        encoder.post_processor = processors.TemplateProcessing(
            single=[BOS, "$A"], special_tokens=[(BOS, vocab[BOS])]
        )
    specials = [text.encode() for text in found.specials]
    return Vocabulary(encoder=encoder, token_bytes=[*specials, *found.tokens])
