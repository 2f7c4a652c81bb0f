"""The vocabulary in a GGUF file, under ``tokenizer.ggml.*``.

``model`` is ``gpt2`` for byte-level BPE (tekken included: its ranks have become merges) and
``llama`` for SentencePiece BPE with byte fallback. The names and defaults are llama.cpp's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, processors

from antiphon.models.gguf_metadata import read_metadata
from antiphon.models.sentence_piece_file import Kind, Piece
from antiphon.prompting import token_bytes
from antiphon.prompting.gguf_keys import TokenizerKeys
from antiphon.prompting.pre_tokenizers import PRE_TOKENIZERS, PreTokenizerSpec
from antiphon.prompting.sentence_piece_encoder import (
    Surroundings,
    make_vocabulary,
    missing_byte,
    repeated,
)
from antiphon.prompting.vocabulary import Vocabulary


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary. Raises ``StartupError`` that names a key that is missing or not known."""
    keys = TokenizerKeys(path, read_metadata(path))
    model = keys.text("model")
    if model not in _MODELS:
        raise keys.unknown("model", model, _MODELS)
    return _MODELS[model](keys)


def _byte_level(keys: TokenizerKeys) -> Vocabulary:
    name = keys.text("pre")
    if name not in PRE_TOKENIZERS:
        raise keys.unknown("pre", name, PRE_TOKENIZERS)
    spec = PRE_TOKENIZERS[name]
    tokens = keys.texts("tokens")
    kinds = keys.numbers("token_type", len(tokens), Kind.NORMAL)
    if len(set(tokens)) < len(tokens):
        twice = repeated([Piece(token) for token in tokens])
        raise keys.damaged("tokens", f"has {twice!r} twice")
    bos = keys.token("bos_token_id", tokens)
    encoder = _encoder(keys, spec, tokens)
    # Control tokens first take their place, then those that are text: both are matched whole.
    for kind, special in ((Kind.CONTROL, True), (Kind.USER_DEFINED, False)):
        chosen = [token for token, its in zip(tokens, kinds, strict=True) if its == kind]
        encoder.add_tokens(
            [AddedToken(token, special=special, normalized=False) for token in chosen]
        )
    if bos is not None and keys.flag("add_bos_token", default=spec.adds_bos):
        encoder.post_processor = processors.TemplateProcessing(
            single=[tokens[bos], "$A"], special_tokens=[(tokens[bos], bos)]
        )
    table = token_bytes.byte_level(tokens)
    for index, its in enumerate(kinds):
        if its != Kind.NORMAL:
            table[index] = tokens[index].encode()
    return Vocabulary(encoder=encoder, token_bytes=table)


def _encoder(
    keys: TokenizerKeys, spec: PreTokenizerSpec, tokens: Sequence[str]
) -> tokenizers.Tokenizer:
    merges = [(left, right) for left, _, right in (m.partition(" ") for m in keys.texts("merges"))]
    try:
        bpe = models.BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=merges,
            ignore_merges=spec.ignore_merges,
        )
    except Exception as failure:  # the library raises nothing narrower
        raise keys.damaged("merges", f"does not fit the tokens ({failure})") from failure
    encoder = tokenizers.Tokenizer(bpe)
    encoder.normalizer = spec.normalizer()
    encoder.pre_tokenizer = spec.split()
    encoder.decoder = decoders.ByteLevel()
    return encoder


def _sentence_piece(keys: TokenizerKeys) -> Vocabulary:
    tokens = keys.texts("tokens")
    scores = keys.numbers("scores", len(tokens), None)
    kinds = keys.numbers("token_type", len(tokens), None)
    pieces = [Piece(*entry) for entry in zip(tokens, scores, map(int, kinds), strict=True)]
    if text := repeated(pieces):
        raise keys.damaged("tokens", f"has {text!r} twice")
    if byte := missing_byte(pieces):
        raise keys.damaged("tokens", f"lacks {byte}, and every byte has to have a token")
    bos, eos = (keys.token(f"{name}_token_id", tokens) for name in ("bos", "eos"))
    around = Surroundings(
        bos=bos if keys.flag("add_bos_token", default=True) else None,
        eos=eos if keys.flag("add_eos_token", default=False) else None,
        space_before=keys.flag("add_space_prefix", default=True),
    )
    return make_vocabulary(pieces, around)


_MODELS: Mapping[str, Callable[[TokenizerKeys], Vocabulary]] = {
    "gpt2": _byte_level,
    "llama": _sentence_piece,
}
