"""What cannot be served is one clear line on standard error and an exit status that is not 0."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from antiphon.__main__ import main
from antiphon.cli.serve import serve
from antiphon.models.files import ModelFiles

FIXTURES = Path(__file__).parents[2] / "fixtures"


def antiphon(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "antiphon", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def told(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process: for what is refused before anything is loaded or opened."""
    result = CliRunner().invoke(main, arguments, prog_name="antiphon")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def assert_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode not in (0, None)
    assert "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    usage = result.stderr.startswith("Usage: ")  # what click prints above an error of syntax
    assert lines[-1 if usage else 0].startswith("Error: ")
    for word in words:
        assert word in result.stderr
    assert result.stdout in ("", "Loading …\n")


def test_a_taken_port() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_refused(antiphon("serve", "--port", str(port)), f"Port {port}", "in use")


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "no-such-model.gguf"
    assert_refused(antiphon("serve", str(missing), "--port", "0"), str(missing))


def test_a_directory_without_a_model(tmp_path: Path) -> None:
    assert_refused(antiphon("serve", str(tmp_path), "--port", "0"), str(tmp_path))


@pytest.mark.parametrize("size", [0, 3, 4096])
def test_a_file_that_is_no_gguf(tmp_path: Path, size: int) -> None:
    garbage = tmp_path / "garbage.gguf"
    garbage.write_bytes(b"x" * size)
    assert_refused(antiphon("serve", str(garbage), "--port", "0"), "garbage.gguf")


@pytest.mark.parametrize("kept", [64, 1_000_000, 90_000_000])
def test_a_gguf_that_was_cut(default_model: ModelFiles, tmp_path: Path, kept: int) -> None:
    cut = tmp_path / "cut.gguf"
    shutil.copy(default_model.path, cut)
    os.truncate(cut, kept)
    assert_refused(antiphon("serve", str(cut), "--port", "0"), "cut.gguf")


def test_recordings_that_are_not_there(tmp_path: Path) -> None:
    replay = ("serve", "--engine", "replay", "--port", "0", "--fixtures")
    assert_refused(antiphon(*replay, str(tmp_path / "none")), "not a directory")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    assert_refused(antiphon(*replay, str(tmp_path)), "bad.jsonl", "line 1")


def test_flags_that_make_no_sense(tmp_path: Path) -> None:
    replay = ("serve", "--engine", "replay", "--fixtures", str(FIXTURES), "--port", "0")
    assert_refused(told(*replay, "--pace", "quick"), "--pace")
    assert_refused(told(*replay, "some-model"), "MODEL")
    assert_refused(told(*replay, "--device", "cpu"), "--device", "replay")
    assert_refused(told(*replay, "--max-running", "3"), "--max-running", "replay")
    assert_refused(told("serve", "--pace", "full", "--port", "0"), "--pace", "torch")
    assert_refused(told(*replay, "--certfile", "x.pem"), "--keyfile")
    assert_refused(told(*replay, "--certfile", "x.pem", "--keyfile", "y.pem"), "x.pem")
    assert_refused(told(*replay, "--api-key", ""), "--api-key")
    assert_refused(told(*replay, "--secret", ""), "--secret")
    assert_refused(told(*replay, "--max-body", "0"), "--max-body")
    assert_refused(told(*replay, "--max-waiting", "-1"), "--max-waiting")
    assert_refused(told(*replay, "--cors-origin", "https://a.test/path"), "--cors-origin")
    assert_refused(told(*replay, "--unknown-model-status", "500"), "--unknown-model-status")
    assert_refused(told("serve", "--fixtures", str(tmp_path), "--port", "0"), "--fixtures")
    assert_refused(told("serve", "--port", "70000"), "70000")
    assert_refused(told("serve", "--host", "no.such.host.invalid", "--port", "0"), "host")


@pytest.mark.parametrize(
    ("flag", "value", "wrong"),
    [
        ("--weights", "int4", "int3"),
        ("--prefix-cache", "off", "half"),
        ("--step-tokens", "64", "0"),
        ("--kv-cache-bytes", "100000000", "-1"),
        ("--engine-process", "child", "fork"),
        ("--engine-restart", "on", "maybe"),
        ("--engine-hang-timeout", "30", "-1"),
    ],
)
def test_the_engine_s_settings_are_for_the_torch_engine(flag: str, value: str, wrong: str) -> None:
    assert_refused(told("serve", "--engine", "replay", flag, value), flag, "replay")
    assert_refused(told("serve", flag, wrong), flag)


@pytest.mark.parametrize("given", [("--engine-restart", "on"), ("--engine-hang-timeout", "30")])
def test_what_only_a_child_can_do_is_not_asked_of_a_thread(given: tuple[str, str]) -> None:
    result = told("serve", "--engine-process", "thread", *given)
    assert_refused(result, given[0], "--engine-process child")


@pytest.mark.parametrize(
    ("flag", "value"), [("--device", "tpu"), ("--device", "cuda:99"), ("--dtype", "int3")]
)
def test_devices_and_dtypes_that_are_not_there(
    default_model: ModelFiles, flag: str, value: str
) -> None:
    assert_refused(antiphon("serve", flag, value, "--port", "0"), value.partition(":")[0])


def test_fetch_prints_the_path_of_the_cached_model(default_model: ModelFiles) -> None:
    result = antiphon("fetch", "--quiet")
    assert (result.returncode, result.stdout.strip()) == (0, str(default_model.path))


def test_fetch_of_an_unknown_name() -> None:
    assert_refused(antiphon("fetch", "no-such-model"), "no-such-model")


def test_fetch_without_a_network(tmp_path: Path) -> None:
    result = antiphon(
        "fetch", "--quiet", ANTIPHON_CACHE=str(tmp_path), PIP_NO_INDEX="1", PIP_FIND_LINKS=""
    )
    assert_refused(result, "pip download", "antiphon serve")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"] == []


@pytest.mark.parametrize("option", serve.params, ids=lambda option: str(option.name))
def test_every_option_is_read_from_the_environment(option: click.Parameter) -> None:
    if not isinstance(option, click.Option) or option.name == "help":
        return
    name = f"ANTIPHON_{option.name}".upper()
    assert option.name is not None
    flag = option.opts[0]
    assert name == "ANTIPHON_" + flag.removeprefix("--").replace("-", "_").upper()
    made = serve.make_context("serve", [], auto_envvar_prefix="ANTIPHON")
    value = "x"
    if isinstance(option.default, int | float) and not option.is_flag:
        value = str(option.default + 1)
    if isinstance(option.type, click.IntRange) and not isinstance(option.default, int):
        value = "1"
    if isinstance(option.type, click.Choice):
        value = str(option.type.choices[-1])
    if option.is_flag:
        value = "1"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        changed = serve.make_context("serve", [], auto_envvar_prefix="ANTIPHON")
    assert changed.params[option.name] != made.params[option.name]


def test_help_and_version() -> None:
    assert "--fixtures" in antiphon("serve", "--help").stdout
    assert antiphon("--version").stdout.startswith("antiphon, version ")
