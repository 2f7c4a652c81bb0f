"""SentencePiece vocabularies from their own file and from GGUF, against the library itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import gguf
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import StartupError
from antiphon.models.end_tokens import read_end_ids
from antiphon.models.files import ModelFiles
from antiphon.prompting.tokenizer import Tokenizer, load_tokenizer
from prompting.vocabularies import HOSTILE

CORPUS = [
    "The capital of France is Paris, and the café is closed on 14 July 1789.",
    "A system message, a user message and an assistant message walk into a bar.",
    "aab aba baa abab  double  spaces   and more 你好世界 мир",
] * 8
SETTINGS: dict[str, Any] = {
    "model_type": "bpe",
    "byte_fallback": True,
    "vocab_size": 380,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "character_coverage": 0.98,
    "control_symbols": "[INST],[/INST]",
    "user_defined_symbols": "<tool>",
    "minloglevel": 2,
}


def train(**changes: Any) -> bytes:
    """A small model, as the library writes it."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=written, **SETTINGS | changes
    )
    return written.getvalue()


def write(folder: Path, data: bytes, **files: object) -> ModelFiles:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.model").write_bytes(data)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return ModelFiles("m", "hf", folder)


def write_gguf(path: Path, data: bytes, **changes: Any) -> ModelFiles:
    """The same vocabulary in a GGUF file; ``changes`` replace what is written of it."""
    original = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = range(original.vocab_size())
    kinds = [
        2 if original.is_unknown(i)
        else 3 if original.is_control(i)
        else 6 if original.is_byte(i)
        else 4 if original.id_to_piece(i) == "<tool>"
        else 1
        for i in ids
    ]  # fmt: skip
    keys: dict[str, Any] = {
        "tokens": [original.id_to_piece(i) for i in ids],
        "scores": [original.get_score(i) for i in ids],
        "token_type": kinds,
        "bos_token_id": 1,
        "eos_token_id": 2,
    } | changes
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    for key, value in keys.items():
        name = f"tokenizer.ggml.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, bool):
            writer.add_bool(name, value)
        elif value is not None:
            writer.add_uint32(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return ModelFiles("m", "gguf", path)


Pair = tuple[Tokenizer, sentencepiece.SentencePieceProcessor]


@pytest.fixture(scope="module")
def model() -> bytes:
    return train()


@pytest.fixture(scope="module", params=["folder", "gguf", "no prefix"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: bytes
) -> Pair:
    """Our tokenizer and the library's, of one file."""
    work = tmp_path_factory.mktemp("pair")
    if request.param == "no prefix":
        model = train(add_dummy_prefix=False)
    gguf_file = request.param == "gguf"
    files = write_gguf(work / "m.gguf", model) if gguf_file else write(work / "m", model)
    return load_tokenizer(files), sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_ids_and_text_are_the_librarys(text: str, pair: Pair) -> None:
    tokenizer, original = pair
    ids = tokenizer.encode(text, add_special_tokens=False, allow_special=False)
    assert list(ids) == original.encode(text)
    shown = b"".join(tokenizer.token_bytes[i] for i in ids).decode()
    # The library takes the space away that it put before the text; ours is what the bytes say.
    assert shown in (original.decode(list(ids)), " " + original.decode(list(ids)))


@given(text=st.text(st.sampled_from("ab cdeé你\n<>/[]INST_\0▁") | st.characters(codec="utf-8")))
def test_any_text(text: str, pair: Pair) -> None:
    tokenizer, original = pair
    ids = tokenizer.encode(text, add_special_tokens=False, allow_special=False)
    assert list(ids) == original.encode(text)


def test_control_tokens_are_those_of_the_file(pair: Pair) -> None:
    tokenizer, original = pair
    named = {original.piece_to_id(text) for text in ("<unk>", "<s>", "</s>", "[INST]", "[/INST]")}
    assert tokenizer.special_ids == named
    ids = tokenizer.encode("[INST]", add_special_tokens=False, allow_special=True)
    assert list(ids) == [original.piece_to_id("[INST]")]


@pytest.mark.parametrize(
    ("config", "before", "after"),
    [({}, [1], []), ({"add_bos_token": False}, [], []), ({"add_eos_token": True}, [1], [2])],
)
def test_what_goes_around_a_text(
    config: dict[str, bool], before: list[int], after: list[int], model: bytes, tmp_path: Path
) -> None:
    folder = write(tmp_path / "m", model, tokenizer_config=config)
    for files in (folder, write_gguf(tmp_path / "m.gguf", model, **config)):
        tokenizer = load_tokenizer(files)
        bare = tokenizer.encode("Paris", add_special_tokens=False, allow_special=True)
        full = tokenizer.encode("Paris", add_special_tokens=True, allow_special=True)
        assert list(full) == [*before, *bare, *after]


def test_a_gguf_file_may_say_that_no_space_goes_before(model: bytes, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_gguf(tmp_path / "m.gguf", model, add_space_prefix=False))
    ids = tokenizer.encode("a b", add_special_tokens=False, allow_special=True)
    assert b"".join(tokenizer.token_bytes[i] for i in ids) == b"a b"


def test_the_end_is_the_files(model: bytes, tmp_path: Path) -> None:
    assert read_end_ids(write(tmp_path / "m", model)) == {2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model_type": "unigram", "vocab_size": 310},
            r"model_type is 1; known here: 2 \(BPE\)",
        ),
        (
            {"byte_fallback": False, "vocab_size": 100},
            r"byte_fallback is False; known here: True",
        ),
        ({"remove_extra_whitespaces": True}, r"remove_extra_whitespaces is True; known here: Fal"),
        ({"treat_whitespace_as_suffix": True}, r"treat_whitespace_as_suffix is True"),
        ({"normalization_rule_name": "nmt_nfkc"}, r"name is nmt_nfkc; known here: identity"),
    ],
)
def test_what_is_not_known_is_refused_by_key_and_value(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match=words):
        load_tokenizer(write(tmp_path / "m", train(**changes)))


@pytest.mark.parametrize("data", [b"", b"{}", b"\x0a\xff\xff", b"\x0a\x02\x0a\x05", b"\xff" * 40])
def test_a_file_that_is_none_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(
        StartupError, match=r"tokenizer\.model is not a( whole)? SentencePiece model"
    ):
        load_tokenizer(write(tmp_path / "m", data))


def test_a_cut_file_is_refused(model: bytes, tmp_path: Path) -> None:
    for end in range(1, len(model), 97):
        with pytest.raises(StartupError, match=r"tokenizer\.model"):
            load_tokenizer(write(tmp_path / "m", model[:end]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": None}, r"tokenizer\.ggml\.scores is missing"),
        ({"scores": [0.5]}, r"tokenizer\.ggml\.scores has 1 entries for 380 tokens"),
        ({"token_type": None}, r"tokenizer\.ggml\.token_type is missing"),
        ({"tokens": ["a", "a"], "scores": [0.0, 0.0], "token_type": [1, 1]}, "has 'a' twice"),
        ({"tokens": ["a"], "scores": [0.0], "token_type": [1]}, "lacks <0x00>, and every byte"),
        ({"bos_token_id": 10**6}, r"bos_token_id is 1000000, not one of the 380 tokens"),
    ],
)
def test_a_gguf_vocabulary_that_does_not_fit_together_is_refused(
    changes: dict[str, Any], words: str, model: bytes, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match=words):
        load_tokenizer(write_gguf(tmp_path / "m.gguf", model, **changes))
