"""Small real vocabularies, made at test time, in the formats models are published in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import gguf
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

from antiphon.models.files import ModelFiles

CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
HOSTILE = (
    "plain words, and  double  spaces ",
    " leading space",
    "tabs\tand\nlines\r\nand\r\n\r\nCRLF",
    "naïve café — “quotes”…",
    "你好,世界。こんにちは 안녕하세요",
    "שלום עולם مرحبا بالعالم\u200f",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 🇫🇷 France, 👍🏽",
    "e\u0301 decomposed, \u1e9b\u0323",
    "NUL \0 and \x7f and \x1b[31m",
    "literal \ufffd replacement",
    "\ufeffBOM and \u2028 separator and \u00a0 nbsp",
    "\U0010fffd far plane \U000e0041",
    "123 4567 89.0e-10 ½ ٣",
    "don't we'll I'VE",
    "<|im_end|> <|im_start|>system",
    "",
)

_CORPUS = [
    "The capital of France is Paris, and the café is closed on 14 July 1789.",
    "A system message, a user message and an assistant message walk into a bar.",
    "def main():\n    return [1, 2, 3]\n",
    "don't we'll they've I'm 你好世界 здравствуй мир שלום",
    "<|a|> <|b|> <|c|> <|d|>",
    "im_end im_start endoftext system user assistant s> <s </s",
] * 4


def train_byte_level(
    split: pre_tokenizers.PreTokenizer, *, controls: Iterable[str] = CONTROLS
) -> tokenizers.Tokenizer:
    """A byte-level BPE vocabulary of 500 entries, control tokens first."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in controls],
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def _alphabet() -> dict[int, str]:
    """GPT-2's alphabet of bytes, as that model's own code makes it."""
    kept = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    kept += range(ord("®"), ord("ÿ") + 1)
    moved = [byte for byte in range(256) if byte not in kept]
    alphabet = {byte: chr(byte) for byte in kept}
    alphabet |= {byte: chr(256 + place) for place, byte in enumerate(moved)}
    return alphabet


_ALPHABET = _alphabet()


def spell(data: bytes) -> str:
    """Bytes in GPT-2's alphabet."""
    return "".join(map(_ALPHABET.__getitem__, data))


def smollm_split() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )


_SENTENCE_PIECE_CONTROLS = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")


def _byte_pieces() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def sentence_piece_bpe(*, scheme: str = "first") -> tokenizers.Tokenizer:
    """BPE over ``▁`` with byte fallback; its merges lead to ``</s>``, as converted ones do."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(_CORPUS, trainers.BpeTrainer(vocab_size=300, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = [*_SENTENCE_PIECE_CONTROLS, *_byte_pieces(), *"</s>▁"]
    merges = [("<", "/"), ("s", ">"), ("</", "s>"), *map(tuple, model["merges"])]
    pieces += ["</", "s>", *model["vocab"]]
    vocab = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    return _sentence_piece(tokenizer)


def sentence_piece_unigram() -> tokenizers.Tokenizer:
    """Unigram with byte fallback, its control tokens among the pieces, as converted ones are."""
    words = ["▁", "▁the", "▁capital", "▁system", "▁user", "▁Paris", "im_end", "ing"]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,<>|_/\n"
    vocab = [("<unk>", 0.0), *((text, 0.0) for text in _SENTENCE_PIECE_CONTROLS)]
    vocab += [(piece, -20.0) for piece in _byte_pieces()]
    vocab += [(word, -4.0) for word in words] + [(letter, -8.0) for letter in letters]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return _sentence_piece(tokenizer)


def _sentence_piece(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(
        [AddedToken(text, normalized=False) for text in _SENTENCE_PIECE_CONTROLS]
    )
    return tokenizer


def write_folder(
    folder: Path, tokenizer: tokenizers.Tokenizer, **files: Mapping[str, Any] | str
) -> ModelFiles:
    """A folder with ``tokenizer.json`` and other files: ``config={}`` makes ``config.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        if isinstance(content, str):
            (folder / f"{name}.jinja").write_text(content, encoding="utf-8")
        else:
            (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return ModelFiles(folder.name, "hf", folder)


def write_gguf(
    path: Path,
    tokenizer: tokenizers.Tokenizer,
    *,
    pre: str = "smollm",
    model: str = "gpt2",
    user_defined: Iterable[str] = (),
    template: str | None = None,
    **ids: int | bool,
) -> ModelFiles:
    """The same vocabulary as the metadata of a GGUF file; ``ids`` such as ``eos_token_id=2``."""
    spec = json.loads(tokenizer.to_str())
    vocab = spec["model"]["vocab"]
    tokens = [*sorted(vocab, key=vocab.__getitem__), *user_defined]
    kinds = [3 if text in CONTROLS else 1 for text in tokens]
    for text in user_defined:
        kinds[tokens.index(text)] = 4
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in spec["model"]["merges"]])
    for key, value in ids.items():
        if isinstance(value, bool):
            writer.add_bool(f"tokenizer.ggml.{key}", value)
        else:
            writer.add_uint32(f"tokenizer.ggml.{key}", value)
    if template is not None:
        writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return ModelFiles(path.stem, "gguf", path)
