"""Vocabularies in the form of ``tekken.json``, against tiktoken, which reads the original."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import StartupError
from antiphon.models.end_tokens import read_end_ids
from antiphon.models.files import ModelFiles
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import HOSTILE, smollm_split, train_byte_level

PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIALS = 30


def words() -> list[bytes]:
    """Tokens in the order of their ranks: the bytes, then what training found."""
    trained = json.loads(train_byte_level(smollm_split(), controls=()).to_str())["model"]["merges"]
    found = dict.fromkeys(bytes([byte]) for byte in range(256))
    for left, right in trained:
        text = (left + right).replace("Ġ", " ").replace("Ċ", "\n")
        if text.isascii():
            found[text.encode()] = None
    return [*found, "é".encode(), "世界".encode(), "👍".encode()[:3]]


WORDS = words()


def content(**config: Any) -> dict[str, Any]:
    return {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(WORDS),
            "default_vocab_size": SPECIALS + len(WORDS) - 1,  # the last one is beyond the model
            "default_num_special_tokens": SPECIALS,
            "version": "v3",
        }
        | config,
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(word).decode(), "token_str": None}
            for rank, word in enumerate(WORDS)
        ],
    }


def write(folder: Path, value: object) -> ModelFiles:
    folder.mkdir(exist_ok=True)
    (folder / "tekken.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return ModelFiles("m", "hf", folder)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(write(tmp_path_factory.mktemp("m"), content()))


@pytest.fixture(scope="module")
def original() -> tiktoken.Encoding:
    ranks = {word: rank for rank, word in enumerate(WORDS[:-1])}
    return tiktoken.Encoding("t", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def agrees(text: str, tokenizer: Tokenizer, original: tiktoken.Encoding) -> bool:
    ids = tokenizer.encode(text, add_special_tokens=False, allow_special=False)
    return list(ids) == [rank + SPECIALS for rank in original.encode(text, disallowed_special=())]


@pytest.mark.parametrize("text", [*HOSTILE, "<s>[INST]</s>", "<SPECIAL_29>"], ids=ascii)
def test_ids_are_the_ranks_after_the_special_tokens(
    text: str, tokenizer: Tokenizer, original: tiktoken.Encoding
) -> None:
    assert agrees(text, tokenizer, original)


@given(text=st.text(st.sampled_from("abcdets \n1é世界👍<>/[]") | st.characters(codec="utf-8")))
def test_any_text(text: str, tokenizer: Tokenizer, original: tiktoken.Encoding) -> None:
    assert agrees(text, tokenizer, original)


def test_the_table_and_the_special_tokens(tokenizer: Tokenizer, tmp_path: Path) -> None:
    assert tokenizer.vocab_size == SPECIALS + len(WORDS) - 1
    assert list(tokenizer.token_bytes[SPECIALS:]) == WORDS[:-1]
    assert tokenizer.special_ids == set(range(SPECIALS))
    assert [tokenizer.token_bytes[i] for i in (0, 1, 2, 3, 20, 29)] == [
        *(b"<unk>", b"<s>", b"</s>", b"[INST]", b"<SPECIAL_20>", b"<SPECIAL_29>")
    ]
    ids = tokenizer.encode("[INST]a</s>", add_special_tokens=True, allow_special=True)
    assert list(ids) == [1, 3, SPECIALS + WORDS.index(b"a"), 2]
    assert read_end_ids(write(tmp_path / "m", content())) == {2}


def test_special_tokens_may_be_listed(tmp_path: Path) -> None:
    listed = [{"rank": 0, "token_str": "<s>"}, {"rank": 5, "token_str": "[THINK]"}]
    files = write(tmp_path / "m", content(version="v13") | {"special_tokens": listed})
    table = load_tokenizer(files).token_bytes
    assert [table[i] for i in (0, 1, 5)] == [b"<s>", b"<SPECIAL_1>", b"[THINK]"]


def test_a_count_beyond_all_vocabularies_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    value = content(default_num_special_tokens=10**12, default_vocab_size=10**12 + len(WORDS))
    with pytest.raises(StartupError, match=r"default_num_special_tokens is 1000000000000"):
        load_tokenizer(write(tmp_path, value))


def test_a_special_token_that_no_text_spells_is_refused(tmp_path: Path) -> None:
    value = content() | {"special_tokens": [{"rank": 0, "token_str": "\ud800"}]}
    with pytest.raises(StartupError, match=r"special_tokens has '\\ud800' at rank 0"):
        load_tokenizer(write(tmp_path, value))


def damaged(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    value = content()
    change(value)
    return value


def token(word: bytes) -> str:
    return base64.b64encode(word).decode()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", r"tekken\.json is not JSON"),
        ("[]", r"tekken\.json does not hold a JSON object"),
        ({}, r"tekken\.json: config is None; it must be an object"),
        (content(pattern=None), r"config\.pattern is None; it must be a regular expression"),
        (content(pattern="("), r"config\.pattern cannot be read"),
        (content(default_vocab_size="x"), r"config\.default_vocab_size is 'x'; it must be a count"),
        (content(default_vocab_size=10**9), r"vocab has \d+ entries; config\.default_vocab_size"),
        (content(version="v11"), r"config\.version is 'v11' and special_tokens is missing"),
        (
            damaged(lambda v: v["vocab"][300].update(rank=7)),
            r"vocab\[300\] is damaged: its rank",
        ),
        (damaged(lambda v: v["vocab"][9].update(token_bytes="?")), r"vocab\[9\] is damaged"),
        (damaged(lambda v: v["vocab"].insert(9, None)), r"vocab\[9\] is damaged"),
        (damaged(lambda v: v["vocab"][9].update(token_bytes=token(b"a"))), r"has a token twice"),
        (damaged(lambda v: v["vocab"][9].update(token_bytes=token(b"zq"))), r"with the 256 bytes"),
        (damaged(lambda v: v.update(special_tokens=[{"rank": 0}])), r"not a list of objects with"),
        (
            damaged(lambda v: v.update(special_tokens=[{"rank": 99, "token_str": "<x>"}])),
            r"special_tokens has '<x>' at rank 99; ranks run from 0 to 29",
        ),
        (
            damaged(
                lambda v: v.update(special_tokens=[{"rank": i, "token_str": "<x>"} for i in (0, 1)])
            ),
            r"special_tokens has '<x>' more than once",
        ),
        (
            damaged(lambda v: v.update(special_tokens=[{"rank": 0, "token_str": "the"}])),
            r"special_tokens has 'the', which vocab has as well",
        ),
    ],
)
def test_a_damaged_file_is_refused_by_key_and_value(
    value: object, words: str, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match=words) as refusal:
        load_tokenizer(write(tmp_path / "m", value))
    assert "\n" not in str(refusal.value)
