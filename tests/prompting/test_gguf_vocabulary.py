"""Tokenizers from GGUF metadata agree with the ones their vocabulary came from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

from antiphon.errors import StartupError
from antiphon.models.files import ModelFiles
from antiphon.prompting.tokenizer import load_tokenizer
from prompting.vocabularies import CONTROLS, HOSTILE, smollm_split, train_byte_level, write_gguf


def regex_split(digits: str) -> pre_tokenizers.PreTokenizer:
    """The split that Llama 3's and Qwen2's own ``tokenizer.json`` spell."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+"
        r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


SPLITS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": smollm_split,
    "llama-bpe": lambda: regex_split(r"\p{N}{1,3}"),
    "qwen2": lambda: regex_split(r"\p{N}"),
}


@pytest.mark.parametrize("pre", SPLITS)
def test_ids_and_text_are_those_of_the_reference(pre: str, tmp_path: Path) -> None:
    reference = train_byte_level(SPLITS[pre]())
    tokenizer = load_tokenizer(write_gguf(tmp_path / "a.gguf", reference, pre=pre))
    if pre == "qwen2":
        reference.normalizer = normalizers.NFC()
    for text in HOSTILE:
        ids = tokenizer.encode(text, add_special_tokens=False, allow_special=True)
        assert list(ids) == reference.encode(text).ids
        data = b"".join(tokenizer.token_bytes[token] for token in ids)
        assert data.decode() == reference.decode(list(ids), skip_special_tokens=False)


def test_what_a_file_says_of_its_tokens(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    files = write_gguf(tmp_path / "a.gguf", byte_level, bos_token_id=1)
    tokenizer = load_tokenizer(files)
    assert tokenizer.special_ids == {0, 1, 2}
    assert tokenizer.vocab_size == byte_level.get_vocab_size()
    assert tokenizer.token_bytes[2] == b"<|im_end|>"


def test_user_defined_tokens_are_matched_whole_but_are_no_control_tokens(
    byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    files = write_gguf(tmp_path / "a.gguf", byte_level, user_defined=["<tool call>"])
    tokenizer = load_tokenizer(files)
    last = tokenizer.vocab_size - 1
    assert tokenizer.token_bytes[last] == b"<tool call>"
    for allow_special in (True, False):
        ids = tokenizer.encode(
            "a<tool call>b", add_special_tokens=False, allow_special=allow_special
        )
        assert ids[1] == last
    assert tokenizer.special_ids == {0, 1, 2}


@pytest.mark.parametrize(
    ("pre", "flags", "expected"),
    [
        ("smollm", {}, False),
        ("smollm", {"add_bos_token": True}, True),
        ("llama-bpe", {}, True),
        ("llama-bpe", {"add_bos_token": False}, False),
    ],
)
def test_a_text_gets_a_bos_if_the_file_or_the_pre_tokenizer_says_so(
    pre: str,
    flags: dict[str, Any],
    expected: bool,
    byte_level: tokenizers.Tokenizer,
    tmp_path: Path,
) -> None:
    files = write_gguf(tmp_path / "a.gguf", byte_level, pre=pre, bos_token_id=1, **flags)
    tokenizer = load_tokenizer(files)
    for allow_special in (True, False):
        bare = tokenizer.encode("Hi", add_special_tokens=False, allow_special=allow_special)
        full = tokenizer.encode("Hi", add_special_tokens=True, allow_special=allow_special)
        assert list(full) == [1] * expected + list(bare)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"pre": "viking"},
            r"tokenizer\.ggml\.pre is 'viking'; known here: default, gpt-2, smollm",
        ),
        ({"model": "bert"}, r"tokenizer\.ggml\.model is 'bert'; known here: gpt2, llama"),
        ({"bos_token_id": 10**6}, r"tokenizer\.ggml\.bos_token_id is 1000000, not one of the"),
    ],
)
def test_what_is_not_known_is_refused_by_key_and_value(
    changes: dict[str, Any], words: str, byte_level: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    files = write_gguf(tmp_path / "a.gguf", byte_level, **changes)
    with pytest.raises(StartupError, match=words):
        load_tokenizer(files)


def write_raw(path: Path, *, merges: list[str], kinds: int = 2) -> ModelFiles:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b"])
    writer.add_token_types([1] * kinds)
    writer.add_token_merges(merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return ModelFiles("raw", "gguf", path)


def test_a_vocabulary_that_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="merges does not fit the tokens"):
        load_tokenizer(write_raw(tmp_path / "a.gguf", merges=["a z"]))
    with pytest.raises(StartupError, match="token_type has 3 entries for 2 tokens"):
        load_tokenizer(write_raw(tmp_path / "b.gguf", merges=["a b"], kinds=3))


def test_a_file_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(StartupError, match=r"tokenizer\.ggml\.model is missing"):
        load_tokenizer(ModelFiles("a", "gguf", tmp_path / "a.gguf"))


def test_the_control_tokens_of_the_test_vocabulary_come_first(
    byte_level: tokenizers.Tokenizer,
) -> None:
    assert [byte_level.token_to_id(text) for text in CONTROLS] == [0, 1, 2]
