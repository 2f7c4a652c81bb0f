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


_QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_DEFAULT = (
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
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


def split_on(*patterns: str) -> PreTokenizer:
    """Text is cut where the patterns match, each in what the ones before it left."""
    return pre_tokenizers.Sequence(
        [
            *(Split(Regex(pattern), behavior="isolated") for pattern in patterns),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


_LLAMA3 = PreTokenizerSpec(
    split=lambda: split_on(_CL100K % "{1,3}"), ignore_merges=True, adds_bos=True
)
_QWEN2 = PreTokenizerSpec(split=lambda: split_on(_CL100K % ""), nfc=True)

PRE_TOKENIZERS: Mapping[str, PreTokenizerSpec] = {
    "default": PreTokenizerSpec(split=lambda: split_on(*_DEFAULT)),
    "gpt-2": PreTokenizerSpec(split=_gpt2),
    "smollm": PreTokenizerSpec(split=_smollm),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "qwen35": PreTokenizerSpec(split=lambda: split_on(_QWEN35), nfc=True),
    "tekken": PreTokenizerSpec(split=lambda: split_on(_TEKKEN), ignore_merges=True, adds_bos=True),
    "deepseek-v3": PreTokenizerSpec(split=lambda: split_on(*_DEEPSEEK_V3)),
}
