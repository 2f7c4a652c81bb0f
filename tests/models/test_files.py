"""What ``serve MODEL`` may be given, and the one line that answers everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.errors import StartupError
from antiphon.models import files as files_module
from antiphon.models.cache import cache_folder
from antiphon.models.files import ModelFiles, resolve
from antiphon.models.gguf_metadata import read_metadata
from antiphon.models.hf_folder import read_object
from antiphon.prompting.template_source import read_source
from antiphon.prompting.tokenizer import load_tokenizer


def folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).write_bytes(b"{}")
    return path


@pytest.mark.parametrize("asked", [None, "smollm2"])
def test_the_default_model_comes_from_the_cache(
    asked: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(name: str, *, cache: Path | None) -> Path:
        assert (name, cache) == ("smollm2", tmp_path)
        return tmp_path / "weights.gguf"

    monkeypatch.setattr(files_module, "fetch", fetch)
    assert resolve(asked, tmp_path) == ModelFiles("smollm2", "gguf", tmp_path / "weights.gguf")


def test_a_gguf_file_is_named_after_its_stem(tmp_path: Path) -> None:
    path = tmp_path / "Tiny-1B.Q4_0.GGUF"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    assert resolve(str(path)) == ModelFiles("Tiny-1B.Q4_0", "gguf", path)


def test_a_folder_is_named_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path / "tiny-chat", "config.json", "model.safetensors")
    assert resolve(str(path)) == ModelFiles("tiny-chat", "hf", path)
    monkeypatch.chdir(path)
    assert resolve(".").name == "tiny-chat"


def test_a_sharded_folder_is_taken_if_it_is_whole(tmp_path: Path) -> None:
    path = folder(tmp_path / "big", "config.json", "a.safetensors")
    index = path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "a.safetensors"}}))
    assert resolve(str(path)).kind == "hf"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    with pytest.raises(StartupError, match=r"lacks 1 of its shards, the first: b\.safetensors"):
        resolve(str(path))
    index.write_text("[]")
    with pytest.raises(StartupError, match="does not hold a JSON object"):
        resolve(str(path))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "é" * 200])
def test_a_shard_s_name_is_one_that_a_file_may_have(name: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "big", "config.json")
    index = path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(StartupError, match=r"for x; give a file's name") as refusal:
        resolve(str(path))
    assert len(str(refusal.value)) < 1000


def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(StartupError, match=r"m\.gguf is a pipe"):
        resolve(str(tmp_path / "m.gguf"))
    path = folder(tmp_path / "m", "config.json")
    for name in ("tokenizer.json", "chat_template.jinja", "model.safetensors.index.json"):
        os.mkfifo(path / name)
    files = ModelFiles("m", "hf", path)
    for read in (load_tokenizer, read_source, lambda _: read_object(path / "tokenizer.json")):
        with pytest.raises(StartupError, match="is a pipe"):
            read(files)
    with pytest.raises(StartupError, match="is a pipe"):
        read_metadata(tmp_path / "m.gguf")


def test_a_cache_in_nobody_s_home_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", "~no-such-user/x")
    with pytest.raises(StartupError, match="ANTIPHON_CACHE is '~no-such-user/x'"):
        cache_folder()


def missing(root: Path) -> Path:
    return root / "nowhere"


def empty_folder(root: Path) -> Path:
    return folder(root / "empty")


def folder_of_ggufs(root: Path) -> Path:
    return folder(root / "ggufs", "b.gguf", "a.gguf")


def without_weights(root: Path) -> Path:
    return folder(root / "bare", "config.json")


def pickles(root: Path) -> Path:
    return folder(root / "old", "config.json", "pytorch_model.bin")


def file(name: str, content: bytes = b"x") -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        path = root / name
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (missing, "There is no model at '.*nowhere'.*or one of: smollm2"),
        (empty_folder, "has no config.json; give a .gguf file, or a folder"),
        (folder_of_ggufs, "give one file of it, such as .*a.gguf"),
        (without_weights, "has neither model.safetensors nor model.safetensors.index.json"),
        (pickles, "weights as pickles only.*convert them to safetensors"),
        (file("weights.pt"), "is a pickle, and loading one runs whatever code it holds"),
        (file("model.safetensors"), "holds weights only; give its folder"),
        (file("model.onnx"), "is not a kind of model file known here"),
        (file("cut.gguf", b""), "does not start with 'GGUF'. Was the download cut short?"),
        (file("page.gguf", b"<html>"), "does not start with 'GGUF'"),
    ],
)
def test_everything_else_gets_one_line_that_says_what_to_give(
    make: Callable[[Path], Path], words: str, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match=words) as refusal:
        resolve(str(make(tmp_path)))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["x" * 5000, "~no-such-user/model", "a\0b"])
def test_what_cannot_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(StartupError):
        resolve(name)
