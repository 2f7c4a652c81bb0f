"""Tokenizers from a folder: the two known families, and clear refusals for the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from antiphon.errors import InvalidRequest, StartupError
from antiphon.models.files import ModelFiles
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import (
    HOSTILE,
    sentence_piece_bpe,
    smollm_split,
    train_byte_level,
    write_folder,
)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_ids_are_those_of_the_reference(
    text: str, family: tuple[Tokenizer, tokenizers.Tokenizer]
) -> None:
    tokenizer, reference = family
    ids = tokenizer.encode(text, add_special_tokens=False, allow_special=True)
    assert list(ids) == reference.encode(text, add_special_tokens=False).ids


def test_only_the_tokenizer_file_is_needed(
    byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", byte_level))
    assert tokenizer.vocab_size == byte_level.get_vocab_size()


def test_a_saved_truncation_and_padding_are_not_applied(
    byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    saved = tokenizers.Tokenizer.from_str(byte_level.to_str())
    saved.enable_truncation(2)
    saved.enable_padding(length=64)
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", saved))
    text = "a longer text than two tokens"
    ids = tokenizer.encode(text, add_special_tokens=True, allow_special=True)
    assert list(ids) == byte_level.encode(text).ids


def test_what_the_model_wants_around_a_text_is_added_with_and_without_control_tokens(
    byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    saved = tokenizers.Tokenizer.from_str(byte_level.to_str())
    saved.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)]
    )
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", saved))
    plain = list(tokenizer.encode("Paris", add_special_tokens=False, allow_special=True))
    for allow_special in (True, False):
        ids = tokenizer.encode("Paris", add_special_tokens=True, allow_special=allow_special)
        assert list(ids) == [1, *plain, 2]


def test_an_id_the_vocabulary_skips_has_no_bytes(tmp_path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={"a": 0, "b": 3}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    loaded = load_tokenizer(write_folder(tmp_path / "m", tokenizer))
    assert list(loaded.token_bytes) == [b"a", b"", b"", b"b"]


def test_half_a_surrogate_pair_is_refused(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_folder(tmp_path / "m", byte_level))
    with pytest.raises(InvalidRequest, match=r"half a surrogate pair \(U\+D83D\)"):
        tokenizer.encode(json.loads('"\\ud83d"'), add_special_tokens=True, allow_special=True)


def word_piece() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab={"a": 0}))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def word_level() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer(models.WordLevel(vocab={"a": 0}))


def undecodable_bpe() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def incomplete_fallback() -> tokenizers.Tokenizer:
    spec = json.loads(sentence_piece_bpe().to_str())
    vocab = spec["model"]["vocab"]
    vocab["<gone>"] = vocab.pop("<0x41>")
    return tokenizers.Tokenizer.from_str(json.dumps(spec))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (word_piece, r"model\.type is 'WordPiece' with decoder \['WordPiece'\]"),
        (word_level, r"model\.type is 'WordLevel' with decoder None and byte_fallback False"),
        (undecodable_bpe, r"model\.type is 'BPE' with decoder None"),
        (incomplete_fallback, r"byte_fallback is true and <0x41> is missing"),
    ],
)
def test_other_families_are_refused(make: type, words: str, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=words):
        load_tokenizer(write_folder(tmp_path / "m", make()))


def test_missing_and_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"has no tokenizer\.json"):
        load_tokenizer(ModelFiles("m", "hf", tmp_path))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(StartupError, match=r"tokenizer\.json cannot be read"):
        load_tokenizer(ModelFiles("m", "hf", tmp_path))


def colliding(place: str, **entry: object) -> str:
    spec = json.loads(train_byte_level(smollm_split()).to_str())
    if place == "added_tokens":
        spec["added_tokens"].append(spec["added_tokens"][0] | entry)
    else:
        spec["model"]["vocab"] |= entry
    return json.dumps(spec)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (colliding("added_tokens", id=416), r"'<\|endoftext\|>' at id 416, which collides"),
        (colliding("added_tokens", content="<new>"), r"'<new>' at id 0, which collides"),
        (colliding("added_tokens", content="<new>", id=300), r"'<new>' at id 300, which collides"),
        (colliding("added_tokens", content="<new>", id=9999), r"'<new>' at id 9999, .* leaves ids"),
        (colliding("added_tokens", content="", id=417), r"added_tokens has '' at id 417"),
        (colliding("vocab", zzz=5), r"model\.vocab has '.*' and '.*' at one id, 5"),
        (
            colliding("vocab", zzz=4 * 10**9),
            r"has 418 tokens and ids up to 4000000000",
        ),
    ],
)
def test_tokens_that_collide_are_refused_by_name(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(StartupError, match=words):
        load_tokenizer(ModelFiles("m", "hf", tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", '{"model": 3}', '{"added_tokens": []}', "\x00\xff"],
)
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(StartupError, match=r"tokenizer\.json cannot be read") as refusal:
        load_tokenizer(ModelFiles("m", "hf", tmp_path))
    assert "\n" not in str(refusal.value)


def test_a_cut_file_is_refused(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    text = byte_level.to_str()
    for end in range(0, len(text) - 1, 997):
        (tmp_path / "tokenizer.json").write_text(text[:end])
        with pytest.raises(StartupError, match=r"tokenizer\.json cannot be read"):
            load_tokenizer(ModelFiles("m", "hf", tmp_path))
