"""The vocabulary in a GGUF file: byte-level BPE under ``tokenizer.ggml.*``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import tokenizers
from tokenizers import AddedToken, decoders, models, processors

from antiphon.errors import StartupError
from antiphon.models.gguf_metadata import Scalar, Value, read_metadata
from antiphon.prompting import token_bytes
from antiphon.prompting.pre_tokenizers import PRE_TOKENIZERS, PreTokenizerSpec
from antiphon.prompting.vocabulary import Vocabulary

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary. Raises ``StartupError`` that names a key that is missing or not known."""
    keys = _TokenizerKeys(path, read_metadata(path))
    model = keys.text("model")
    if model != "gpt2":
        raise keys.unknown("model", model, ["gpt2"])
    name = keys.text("pre")
    if name not in PRE_TOKENIZERS:
        raise keys.unknown("pre", name, PRE_TOKENIZERS)
    spec = PRE_TOKENIZERS[name]
    tokens = keys.texts("tokens")
    kinds = keys.array("token_type", default=[_NORMAL] * len(tokens))
    if len(kinds) != len(tokens):
        raise keys.damaged("token_type", f"has {len(kinds)} entries for {len(tokens)} tokens")
    bos = keys.token("bos_token_id", tokens)
    encoder = _encoder(keys, spec, tokens)
    # Control tokens first take their place, then those that are text: both are matched whole.
    for kind, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        chosen = [token for token, its in zip(tokens, kinds, strict=True) if its == kind]
        encoder.add_tokens(
            [AddedToken(token, special=special, normalized=False) for token in chosen]
        )
    if bos is not None and keys.flag("add_bos_token", default=spec.adds_bos):
        encoder.post_processor = processors.TemplateProcessing(
            single=[tokens[bos], "$A"], special_tokens=[(tokens[bos], bos)]
        )
    return Vocabulary(encoder=encoder, token_bytes=_token_bytes(tokens, kinds))


def _encoder(
    keys: _TokenizerKeys, spec: PreTokenizerSpec, tokens: Sequence[str]
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


def _token_bytes(tokens: Sequence[str], kinds: Sequence[Scalar]) -> list[bytes]:
    table = token_bytes.byte_level(tokens)
    for index, kind in enumerate(kinds):
        if kind != _NORMAL:
            table[index] = tokens[index].encode()
    return table


@attrs.frozen
class _TokenizerKeys:
    """The ``tokenizer.ggml.*`` keys of one file; a wrong one is a ``StartupError`` naming it."""

    path: Path
    metadata: dict[str, Value]

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self.damaged(key, "is missing" if value is None else f"is {value!r}, not a text")
        return value

    def array(self, key: str, default: Sequence[Scalar]) -> Sequence[Scalar]:
        value = self._get(key)
        if value is None:
            return default
        if isinstance(value, (list, tuple)):
            return value
        raise self.damaged(key, f"is {value!r}, not an array")

    def texts(self, key: str) -> list[str]:
        texts = [entry for entry in self.array(key, ()) if isinstance(entry, str)]
        if not texts:
            raise self.damaged(key, "is missing, or is not an array of texts")
        return texts

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key)
        return default if value is None else bool(value)

    def token(self, key: str, tokens: Sequence[str]) -> int | None:
        value = self._get(key)
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < len(tokens):
            raise self.damaged(key, f"is {value!r}, not one of the {len(tokens)} tokens")
        return value

    def unknown(self, key: str, value: str, known: Iterable[str]) -> StartupError:
        return self.damaged(key, f"is {value!r}; known here: {', '.join(known)}")

    def damaged(self, key: str, what: str) -> StartupError:
        return StartupError(f"{self.path}: tokenizer.ggml.{key} {what}.")

    def _get(self, key: str) -> Value | None:
        return self.metadata.get("tokenizer.ggml." + key)
