"""Where the encoder's native code gives up, the failure is one line like any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import pytest

from antiphon.errors import InvalidRequest, StartupError
from antiphon.models.files import ModelFiles
from antiphon.prompting.panics import panics_as
from antiphon.prompting.prompter import TextPrompter
from antiphon.prompting.tokenizer import load_tokenizer
from prompting.vocabularies import smollm_split, train_byte_level

AROUND = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
FOREIGN = {"q": {"id": "q", "ids": [99_999], "tokens": ["q"]}}


def folder(path: Path, **changes: Any) -> ModelFiles:
    """A byte-level vocabulary with other parts; a dict changes the part that is there."""
    spec = json.loads(train_byte_level(smollm_split()).to_str())
    for name, part in changes.items():
        spec[name] = {**(spec[name] or {}), **part}
    (path / "tokenizer.json").write_text(json.dumps(spec))
    return ModelFiles("m", "hf", path)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"continuing_subword_prefix": "##"}},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
    ],
    ids=["prefix", "charsmap"],
)
def test_a_damaged_vocabulary_is_a_refusal_to_start(changes: Any, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"tokenizer\.json") as refusal:
        load_tokenizer(folder(tmp_path, **changes))
    assert "\n" not in str(refusal.value)


def test_merges_that_fit_no_tokens_are_a_refusal_to_start(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(path := tmp_path / "m.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b"])
    writer.add_token_merges(["a b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(StartupError, match=r"m\.gguf") as refusal:
        load_tokenizer(ModelFiles("m", "gguf", path))
    assert "\n" not in str(refusal.value)


def test_a_text_the_encoder_gives_up_on_is_refused(tmp_path: Path) -> None:
    hungry = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated"}
    levels = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    members = [{**hungry, "invert": False}, {**levels, "use_regex": False}]
    split = {"type": "Sequence", "pretokenizers": members}
    tokenizer = load_tokenizer(folder(tmp_path, pre_tokenizer=split))
    prompter = TextPrompter(tokenizer, None)
    hard = "a" * 60 + "b"
    with pytest.raises(InvalidRequest, match="cannot encode this text") as refusal:
        prompter.text(hard)
    assert refusal.value.param == "prompt"
    with pytest.raises(InvalidRequest, match="cannot encode this text"):
        tokenizer.encode(hard, add_special_tokens=True, allow_special=False)
    assert prompter.text("ab")


@pytest.mark.parametrize(
    ("single", "words"),
    [
        ([{"SpecialToken": {"id": "q", "type_id": 0}}, TEXT], "puts id 99999 around a text"),
        ([], "has no tokens"),
        ([{"SpecialToken": {"id": "q", "type_id": 0}}], r"99999|leaves the text itself out"),
    ],
)
def test_what_no_request_could_pass_is_a_refusal_to_start(
    single: Any, words: str, tmp_path: Path
) -> None:
    around = {**AROUND, "single": single, "special_tokens": FOREIGN}
    with pytest.raises(StartupError, match=words):
        load_tokenizer(folder(tmp_path, post_processor=around))


def test_other_exceptions_pass() -> None:
    with pytest.raises(KeyboardInterrupt), panics_as(ValueError):
        raise KeyboardInterrupt
