"""The ids that end an output are those that any of a model's files names."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import gguf
import pytest

from antiphon.errors import StartupError
from antiphon.models.end_tokens import read_end_ids
from antiphon.models.files import ModelFiles

BPE = {
    "added_tokens": [{"id": 7, "content": "<|im_end|>"}],
    "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1}},
}
UNIGRAM = {"added_tokens": [], "model": {"type": "Unigram", "vocab": [["<unk>", 0], ["</s>", 0]]}}
OBJECT = {"content": "<|im_end|>", "special": True}


def folder(path: Path, **objects: Any) -> ModelFiles:
    for name, value in objects.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return ModelFiles("m", "hf", path)


def eos(value: Any) -> dict[str, Any]:
    return {"eos_token_id": value}


def named(text: Any) -> dict[str, Any]:
    return {"eos_token": text}


@pytest.mark.parametrize(
    ("objects", "ids"),
    [
        ({}, set()),
        ({"config": {}, "generation_config": {}, "tokenizer_config": {}}, set()),
        ({"config": eos(None), "tokenizer_config": named(None)}, set()),
        ({"config": eos(0)}, {0}),
        ({"config": eos([0, 3])}, {0, 3}),
        ({"config": eos(0), "generation_config": eos([0, 2])}, {0, 2}),
        ({"tokenizer_config": named("<|im_end|>"), "tokenizer": BPE}, {7}),
        ({"tokenizer_config": named(OBJECT), "tokenizer": BPE}, {7}),
        ({"tokenizer_config": named("</s>"), "tokenizer": BPE}, {1}),
        ({"tokenizer_config": named("</s>"), "tokenizer": UNIGRAM}, {1}),
        (
            {
                "config": eos(0),
                "generation_config": eos([2, 3]),
                "tokenizer_config": named("<|im_end|>"),
                "tokenizer": BPE,
            },
            {0, 2, 3, 7},
        ),
    ],
    ids=str,
)
def test_a_folder(tmp_path: Path, objects: dict[str, Any], ids: set[int]) -> None:
    assert read_end_ids(folder(tmp_path, **objects)) == ids


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ({"config": eos("</s>")}, r"/config\.json: eos_token_id is '</s>'"),
        ({"config": eos(True)}, r"/config\.json: eos_token_id is True"),
        ({"generation_config": eos([2, -1])}, r"generation_config\.json: .* is \[2, -1\]"),
        ({"config": []}, r"config\.json does not hold a JSON object"),
        ({"tokenizer_config": named("</s>")}, r"tokenizer\.json cannot be read: No such file"),
        (
            {"tokenizer_config": named("<eot>"), "tokenizer": BPE},
            r"tokenizer_config\.json: eos_token is '<eot>', which tokenizer\.json does not have",
        ),
    ],
    ids=str,
)
def test_a_folder_that_names_none(tmp_path: Path, objects: dict[str, Any], words: str) -> None:
    with pytest.raises(StartupError, match=words):
        read_end_ids(folder(tmp_path, **objects))


def written(path: Path, **ids: int) -> ModelFiles:
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in ids.items():
        writer.add_int32(f"tokenizer.ggml.{name}_token_id", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return ModelFiles("m", "gguf", path)


def test_a_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    assert read_end_ids(written(path)) == set()
    assert read_end_ids(written(path, bos=1, eos=2)) == {2}
    assert read_end_ids(written(path, eos=2, eot=5, eom=9)) == {2, 5, 9}
    with pytest.raises(StartupError, match=r"tokenizer\.ggml\.eot_token_id is -1"):
        read_end_ids(written(path, eos=2, eot=-1))


def tekken(path: Path, *specials: str) -> None:
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(bytes([rank])).decode()}
        for rank in range(256)
    ]
    listed = [{"rank": rank, "token_str": text} for rank, text in enumerate(specials)]
    counts = {
        "default_num_special_tokens": len(specials),
        "default_vocab_size": 256 + len(specials),
    }
    content = {"config": {"pattern": ".", **counts}, "vocab": vocab, "special_tokens": listed}
    (path / "tekken.json").write_text(json.dumps(content))


def test_a_folder_with_a_tekken_file(tmp_path: Path) -> None:
    tekken(tmp_path, "<unk>", "<s>", "</s>", "[END]")
    files = folder(tmp_path, config=eos(9))
    assert read_end_ids(files) == {2, 9}
    folder(tmp_path, tokenizer_config=named("[END]"))
    assert read_end_ids(files) == {3, 9}
    folder(tmp_path, tokenizer_config=named("<eot>"))
    with pytest.raises(StartupError, match=r"eos_token is '<eot>', which tekken\.json does not"):
        read_end_ids(files)
    # A tokenizer.json is taken before it, for texts and so for their end.
    folder(tmp_path, tokenizer_config=named("</s>"), tokenizer=BPE)
    assert read_end_ids(files) == {1, 9}


def piece(text: str, kind: int) -> bytes:
    fields = b"\x0a" + bytes([len(text)]) + text.encode() + b"\x18" + bytes([kind])
    return b"\x0a" + bytes([len(fields)]) + fields


def test_a_folder_with_a_sentence_piece_file(tmp_path: Path) -> None:
    pieces = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1)
    (tmp_path / "tokenizer.model").write_bytes(pieces)
    files = folder(tmp_path)
    assert read_end_ids(files) == {2}
    folder(tmp_path, tokenizer_config=named("a"))
    assert read_end_ids(files) == {3}
    folder(tmp_path, tokenizer_config=named("b"))
    with pytest.raises(StartupError, match=r"eos_token is 'b', which tokenizer\.model does not"):
        read_end_ids(files)


@pytest.mark.parametrize(
    "tokenizer",
    [
        {"added_tokens": [{"id": 7}]},
        {"added_tokens": 3},
        {"model": {"vocab": 3}},
        {"model": {"vocab": [["a"]]}},
        {"model": [1]},
    ],
    ids=str,
)
def test_a_damaged_tokenizer(tmp_path: Path, tokenizer: Any) -> None:
    files = folder(tmp_path, tokenizer_config=named("</s>"), tokenizer=tokenizer)
    with pytest.raises(StartupError, match=r"tokenizer\.json is damaged"):
        read_end_ids(files)
