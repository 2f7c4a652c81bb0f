"""Fetching from a hub: the real client against a hub on this machine, and all that can go wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from huggingface_hub import constants

from antiphon.errors import StartupError
from antiphon.models import hub_download
from antiphon.models.files import ModelFiles, resolve
from antiphon.models.hub import fetch_from_hub, find
from antiphon.models.hub_name import HubName, parse_hub_name
from models.fake_hub import COMMIT, FakeHub, Fault, serving

TINY = HubName("org/tiny")
GGUF = HubName("org/tiny", file="tiny.Q8_0.gguf")
WEIGHTS = bytes(range(256)) * 40


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A whole model, and much that is not needed to serve it."""
    with serving() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 100)
        monkeypatch.setattr("time.sleep", lambda seconds: None)  # the client's between tries
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        hub.files = {
            "config.json": b"{}",
            "generation_config.json": b'{"eos_token_id": 2}',
            "tokenizer.json": b'{"model": {}}',
            "tokenizer.model": b"not needed beside the other",
            "tokenizer_config.json": b"",
            "chat_template.jinja": "{{ 'é' }}".encode(),
            "model.safetensors": WEIGHTS,
            "pytorch_model.bin": b"a pickle",
            "README.md": b"words",
            "onnx/model.onnx": b"another form",
        }
        hub.large = {"model.safetensors", "tokenizer.json", "tiny.Q8_0.gguf"}
        yield hub


def make_gguf(hub: FakeHub) -> None:
    hub.files = {"tiny.Q8_0.gguf": b"GGUF" + WEIGHTS, "tiny.F16.gguf": b"GGUF", "README.md": b""}


def half_fetched(cache: Path) -> list[str]:
    return [path.name for path in (cache / "hub").rglob("*.part")]


def test_what_serving_needs_is_fetched_and_nothing_else(hub: FakeHub, tmp_path: Path) -> None:
    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    needed = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    needed |= {"chat_template.jinja", "model.safetensors"}
    assert {file.name: file.read_bytes() for file in path.iterdir()} == {
        name: hub.files[name] for name in needed
    }
    assert path == tmp_path / "hub" / "org" / "tiny" / COMMIT


def test_progress_goes_to_standard_error_unless_quiet(
    hub: FakeHub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fetch_from_hub(TINY, cache=tmp_path / "a")
    loud = capfd.readouterr()
    assert loud.out == ""
    assert f"Fetching model.safetensors of org/tiny (0 MiB) from {hub.url}\n" in loud.err
    fetch_from_hub(TINY, cache=tmp_path / "b", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_shards_are_those_that_the_index_names(hub: FakeHub, tmp_path: Path) -> None:
    del hub.files["model.safetensors"]
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    index = {"weight_map": {"a": parts[0], "b": parts[1], "c": parts[0]}}
    hub.files["model.safetensors.index.json"] = json.dumps(index).encode()
    hub.files |= dict.fromkeys([*parts, "consolidated.safetensors"], WEIGHTS)
    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert sorted(file.name for file in path.glob("*.safetensors")) == parts

    hub.commit = "f" * 40
    del hub.files[parts[1]]
    with pytest.raises(StartupError, match=f"names '{parts[1]}', which is no weights file"):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    for index in ({}, {"weight_map": {"a": "../../../etc/passwd"}}):
        hub.files["model.safetensors.index.json"] = json.dumps(index).encode()
        hub.commit = hub.commit[1:] + "0"
        with pytest.raises(StartupError, match=r"missing or empty|no weights file of org/tiny"):
            fetch_from_hub(TINY, cache=tmp_path, quiet=True)


def test_one_gguf_file_of_a_repository(hub: FakeHub, tmp_path: Path) -> None:
    make_gguf(hub)
    path = fetch_from_hub(GGUF, cache=tmp_path, quiet=True)
    assert path.read_bytes() == hub.files[path.name]
    assert hub.ranges("tiny.F16.gguf") == []
    assert resolve("org/tiny:tiny.Q8_0.gguf", tmp_path) == ModelFiles("org/tiny", "gguf", path)


def test_a_fetched_model_is_found_without_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    files = resolve("org/tiny", tmp_path)
    assert files == ModelFiles("org/tiny", "hf", tmp_path / "hub" / "org" / "tiny" / COMMIT)
    resolve("org/tiny@v1/beta", tmp_path)
    asked = len(hub.asked)
    assert resolve("org/tiny", tmp_path) == files
    assert resolve(f"org/tiny@{COMMIT}", tmp_path) == files
    assert resolve("org/tiny@v1/beta", tmp_path) == files
    assert fetch_from_hub(HubName("org/tiny", COMMIT), cache=tmp_path) == files.path
    assert len(hub.asked) == asked


def test_fetching_again_asks_for_the_newest_and_fetches_only_what_is_new(
    hub: FakeHub, tmp_path: Path
) -> None:
    first = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert fetch_from_hub(TINY, cache=tmp_path, quiet=True) == first
    assert hub.ranges("model.safetensors") == [None]
    hub.commit = "f" * 40
    second = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert second.name == hub.commit
    assert find(TINY, cache=tmp_path) == second
    assert first.is_dir()


def test_what_is_on_disk_is_no_name_of_a_hub(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "org" / "tiny"
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes(b"{}")
    monkeypatch.chdir(tmp_path)
    assert resolve("org/tiny", tmp_path).path == Path("org/tiny")
    assert hub.asked == []


def test_a_cut_transfer_is_gone_on_with_at_once(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["model.safetensors"] = [Fault(cut_after=1000)]
    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.ranges("model.safetensors") == [None, "bytes=1000-"]


def test_what_a_broken_fetch_left_is_gone_on_with_by_the_next(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["model.safetensors"] = [Fault(cut_after=500), Fault(status=500)]
    with pytest.raises(StartupError, match=f"{hub.url} answered 500 for org/tiny; try again later"):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert find(TINY, cache=tmp_path) is None
    assert half_fetched(tmp_path) == ["model.safetensors.part"]

    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.ranges("model.safetensors") == [None, "bytes=500-", "bytes=500-"]
    assert hub.ranges("config.json") == [None]
    assert half_fetched(tmp_path) == []


@pytest.mark.parametrize("left", [b"other bytes", WEIGHTS + b"more"], ids=["other", "longer"])
def test_what_is_left_of_something_else_is_fetched_anew(
    left: bytes, hub: FakeHub, tmp_path: Path
) -> None:
    work = tmp_path / "hub" / "org" / "tiny" / f".fetch-{COMMIT}"
    work.mkdir(parents=True)
    (work / "model.safetensors.part").write_bytes(left)
    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.ranges("model.safetensors")[-1] is None


def test_what_was_half_fetched_of_an_older_commit_is_swept(hub: FakeHub, tmp_path: Path) -> None:
    hub.faults["model.safetensors"] = [Fault(status=500)]
    with pytest.raises(StartupError):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    hub.commit = "f" * 40
    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert {file.name for file in path.parent.iterdir()} == {".lock", "refs", hub.commit}


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"], ids=["sha256", "sha1"])
@pytest.mark.parametrize("wrong", ["bytes", "length"])
def test_a_file_that_is_not_what_was_promised_is_not_kept(
    wrong: str, name: str, hub: FakeHub, tmp_path: Path
) -> None:
    content = hub.files[name]
    body = bytes(len(content)) if wrong == "bytes" else content + b"x"
    hub.faults[name] = [Fault(body=body)] * 9
    with pytest.raises(
        StartupError, match=r"org/tiny (came with the wrong|did not come whole)"
    ) as no:
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert "\n" not in str(no.value)
    assert find(TINY, cache=tmp_path) is None
    del hub.faults[name]
    assert (fetch_from_hub(TINY, cache=tmp_path) / name).read_bytes() == content


def test_a_token_opens_what_is_private(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.token = "hf_secret"
    with pytest.raises(
        StartupError, match=r"no model org/tiny on .*, or it is private: then put a"
    ):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert fetch_from_hub(TINY, cache=tmp_path, quiet=True).is_dir()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            Fault(401),
            r"refuses org/tiny \(status 401\): put a token that may read it into HF_TOKEN",
        ),
        (Fault(403, "GatedRepo"), r"org/tiny is gated: accept its terms at http://\S+/org/tiny"),
        (
            Fault(403),
            r"refuses org/tiny \(status 403\): put a token that may read it into HF_TOKEN",
        ),
        (Fault(404, "RepoNotFound"), "There is no model org/tiny"),
        (Fault(404, "RevisionNotFound"), "org/tiny has no revision 'main' on"),
        (Fault(429), r"has had too many requests \(status 429\): try again later"),
        (Fault(500), "answered 500 for org/tiny; try again later"),
        (Fault(body=b"<html>sign in</html>"), "does not answer like a model hub"),
        (Fault(body=b"[]"), "does not answer like a model hub"),
        (Fault(body=b'{"id": "org/tiny", "sha": "../..", "siblings": []}'), "its commit is"),
        (Fault(cut_after=5), "cannot be reached, or broke off, while fetching org/tiny"),
    ],
    ids=str,
)
def test_what_the_hub_refuses_is_one_line(
    fault: Fault, words: str, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["api"] = [fault] * 9
    with pytest.raises(StartupError, match=words) as refusal:
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(403), r"refuses org/tiny \(status 403\)"),
        (Fault(404, "EntryNotFound"), "does not have all the files of org/tiny"),
        (Fault(429), "too many requests"),
    ],
    ids=str,
)
def test_a_file_that_is_refused_is_one_line(
    fault: Fault, words: str, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["tokenizer.json"] = [fault] * 9
    with pytest.raises(StartupError, match=words) as refusal:
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (["model.safetensors"], "org/tiny has its weights as pickles only"),
        (["model.safetensors", "pytorch_model.bin"], "has neither model.safetensors nor model.saf"),
        (["config.json"], "org/tiny has no config.json, and cannot be served"),
        (["tokenizer.json", "tokenizer.model"], "org/tiny has no tokenizer.json, and cannot be"),
    ],
)
def test_a_model_that_could_not_be_served_is_not_fetched(
    without: list[str], words: str, hub: FakeHub, tmp_path: Path
) -> None:
    for name in without:
        del hub.files[name]
    with pytest.raises(StartupError, match=words):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert list(tmp_path.iterdir()) == []


def test_gguf_files_are_offered_by_name(hub: FakeHub, tmp_path: Path) -> None:
    make_gguf(hub)
    offer = r"Its GGUF files: org/tiny:tiny.F16.gguf, org/tiny:tiny.Q8_0.gguf\."
    with pytest.raises(StartupError, match="has no model.safetensors. " + offer):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    with pytest.raises(StartupError, match="org/tiny has no file 'x.gguf'. " + offer):
        fetch_from_hub(HubName("org/tiny", file="x.gguf"), cache=tmp_path, quiet=True)


def test_too_little_space_is_said_before_the_download(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(
        StartupError, match=r"Fetching org/tiny needs 0 MiB in .*tiny, and 0 MiB are"
    ):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert hub.ranges("config.json") == []


def test_a_disk_that_fills_up_is_one_line(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(hub_download, "_get", full)
    with pytest.raises(StartupError, match=r"cannot be put into .*: No space left on device\."):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)


def test_a_hub_that_is_not_there_is_one_line(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as gone:
        pass
    monkeypatch.setattr(constants, "ENDPOINT", gone.url)
    words = f"{gone.url} cannot be reached.*refused.*'antiphon serve PATH' always works"
    with pytest.raises(StartupError, match=words):
        resolve("org/tiny", tmp_path)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (b"[" * 200_000, "does not answer like a model hub"),
        (
            b'{"id": "org/tiny", "sha": "%s", "siblings": '
            b'[{"rfilename": "config.json", "size": -1, "blobId": "%s"}]}'
            % (COMMIT.encode(), COMMIT.encode()),
            "config.json has the size -1",
        ),
    ],
    ids=["deep", "size"],
)
def test_a_listing_that_is_none_is_one_line(
    fault: bytes, words: str, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["api"] = [Fault(body=fault)]
    with pytest.raises(StartupError, match=words) as refusal:
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert "\n" not in str(refusal.value)


def test_settings_of_the_client_that_cannot_be_are_named(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_é")
    with pytest.raises(StartupError, match="HF_TOKEN"):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "ENDPOINT", "")
    with pytest.raises(StartupError, match="HF_ENDPOINT is empty"):
        fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert hub.asked == []


@pytest.mark.parametrize("text", ["org/tiny@" + "a" * 300, "org/tiny:" + "a" * 300 + ".gguf"])
def test_what_the_cache_could_not_name_is_not_fetched(text: str) -> None:
    with pytest.raises(StartupError, match="cannot be a"):
        parse_hub_name(text)


def test_offline_is_offline(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(StartupError, match="HF_HUB_OFFLINE forbids fetching it"):
        resolve("org/tiny", tmp_path)
    assert hub.asked == []


def test_the_command_fetches_from_the_hub_of_the_environment(hub: FakeHub, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "ANTIPHON_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "antiphon", "fetch", "--quiet"]

    def run(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, name], env=environment, capture_output=True, text=True, check=False
        )

    done = run("org/tiny")
    assert (done.stdout, done.stderr) == (f"{tmp_path}/hub/org/tiny/{COMMIT}\n", "")
    refused = run("org/none")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: There is no model org/none on ")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_fetch_leaves_no_half_model(
    how: signal.Signals, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["model.safetensors"] = [Fault(cut_after=500, stalls=True)]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "ANTIPHON_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "antiphon", "fetch", "--quiet", "org/tiny"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert hub.stalled.wait(30)
        process.send_signal(how)
        _, words = process.communicate()
    assert process.returncode != 0
    assert words.strip() == ("Aborted!" if how == signal.SIGINT else "")
    assert find(TINY, cache=tmp_path) is None

    path = fetch_from_hub(TINY, cache=tmp_path, quiet=True)
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.ranges("config.json") == [None]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("org/tiny", HubName("org/tiny")),
        ("Qwen/Qwen2.5-0.5B_x", HubName("Qwen/Qwen2.5-0.5B_x")),
        ("org/tiny@v1.0", HubName("org/tiny", "v1.0")),
        ("org/tiny@refs/pr/1:a/b.GGUF", HubName("org/tiny", "refs/pr/1", "a/b.GGUF")),
    ],
)
def test_the_forms_of_a_name(text: str, parts: HubName) -> None:
    assert parse_hub_name(text) == parts
    assert str(parts) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("org/", "is no name of a model on a hub; give ORG/NAME, ORG/NAME@REVISION or ORG/NAME:"),
        ("org/a/b", "is no name"),
        ("../tiny", "is no name"),
        ("org/..", "is no name"),
        ("org/a..b", "is no name"),
        ("org/ti ny", "is no name"),
        ("org/" + "x" * 200, "is no name"),
        ("org/tiny@../main", "cannot be a revision"),
        ("org/tiny:model.bin", "'model.bin' is not a GGUF file"),
        ("org/tiny:../x.gguf", "cannot be a file of a repository"),
        ("org/tiny:x-00001-of-00003.gguf", "is one part of a split GGUF file"),
    ],
)
def test_a_name_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(StartupError, match=words):
        parse_hub_name(text)
