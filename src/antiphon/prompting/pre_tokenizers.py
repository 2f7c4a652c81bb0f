"""How a GGUF file's ``tokenizer.ggml.pre`` splits text before its merges are applied.

The names are llama.cpp's; the patterns are those of the models' own ``tokenizer.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Split

_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@attrs.frozen(kw_only=True)
class PreTokenizerSpec:
    """What a pre-tokenizer name stands for."""

    split: Callable[[], PreTokenizer]
    nfc: bool = False
    """Text is brought into Unicode's composed form first."""
    ignore_merges: bool = False
    """A whole word of the vocabulary is taken as it is, however its merges would go."""
    adds_bos: bool = False
    """Whether a text gets the BOS when the file has no ``tokenizer.ggml.add_bos_token``."""

    def normalizer(self) -> normalizers.Normalizer | None:
        return normalizers.NFC() if self.nfc else None


def _gpt2() -> PreTokenizer:
    return ByteLevel(add_prefix_space=False, use_regex=True)


def _smollm() -> PreTokenizer:
    return pre_tokenizers.Sequence([Digits(individual_digits=True), _gpt2()])


def _split_on(pattern: str) -> PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            Split(Regex(pattern), behavior="isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


PRE_TOKENIZERS: Mapping[str, PreTokenizerSpec] = {
    "gpt-2": PreTokenizerSpec(split=_gpt2),
    "smollm": PreTokenizerSpec(split=_smollm),
    "llama-bpe": PreTokenizerSpec(
        split=lambda: _split_on(_CL100K % "{1,3}"), ignore_merges=True, adds_bos=True
    ),
    "qwen2": PreTokenizerSpec(split=lambda: _split_on(_CL100K % ""), nfc=True),
}
