"""vLLM's front ends: what is said where they are missing, and what they do where they are not."""

from __future__ import annotations

import re
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import get_args

import attrs
import pytest
from benchmarks.peers import Api
from benchmarks.peers.vllm import PEERS
from benchmarks.peers.vllm_install import FOLDER, VERSION, find
from benchmarks.peers.vllm_model import tokenizer
from benchmarks.serving.processes import free_port
from benchmarks.serving.step_times import StepTimes
from benchmarks.serving.words import SIZE, number_of, word
from hypothesis import given
from hypothesis import strategies as st

MADE, FIRST = tokenizer()
TOKENS = 20


@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=20))
def test_the_tokens_are_the_words_of_our_engine(numbers: list[int]) -> None:
    text = b"".join(word(number) for number in numbers).decode()
    assert MADE.decode([FIRST + number for number in numbers]) == text
    assert MADE.encode(text).ids == [FIRST + number for number in numbers]


def environment(folder: Path, version: str | None) -> Path:
    """A folder that looks like a virtual environment with that version of vLLM."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").touch()
    if version is not None:
        (packages / f"vllm-{version}.dist-info").mkdir()
    return packages / "vllm"


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = PEERS["vllm"]

    def told(folder: Path | None) -> str:
        if folder is None:
            monkeypatch.delenv(FOLDER, raising=False)
        else:
            monkeypatch.setenv(FOLDER, str(folder))
        missing = peer.available()
        assert missing is not None
        assert "\n" not in missing
        with pytest.raises(RuntimeError, match=re.escape(missing)):
            peer.start(0, 0, 0, 1, 0)
        return missing

    assert "is not set" in told(None)
    assert "no bin/python" in told(tmp_path)
    environment(tmp_path / "without", None)
    assert "has no vLLM" in told(tmp_path / "without")
    environment(tmp_path / "old", "0.10.1")
    assert f"has vLLM 0.10.1; {VERSION} is" in told(tmp_path / "old")


def test_the_one_in_rust_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = environment(tmp_path, VERSION)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert find().package == package
    assert PEERS["vllm"].available() is None
    missing = PEERS["vllm-rust"].available()
    assert missing is not None
    assert "vllm-rs is not a program" in missing
    package.mkdir()
    find().rust.touch(0o755)
    assert PEERS["vllm-rust"].available() is None


@pytest.mark.parametrize("name", PEERS)
def test_it_streams_our_words_and_is_gone_after_stop(name: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    if missing := peer.available():
        pytest.skip(missing)
    times = StepTimes.make(tmp_path / "times")
    port = free_port()
    server = attrs.evolve(peer, times=times).start(port, 0, 0, 1, 1000)  # type: ignore[misc]  # it has the field
    try:
        for api in get_args(Api):
            if api == "responses" and name == "vllm-rust":
                with pytest.raises(LookupError, match="no responses"):
                    server.request(api, TOKENS)
                continue
            path, headers, body = server.request(api, TOKENS)
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", path, body, {**headers, "content-type": "application/json"})
            read = connection.getresponse().read()
            connection.close()
            steps = [
                number_of(found)
                for found in re.findall(rb'"(?:content|text|delta)":" ([a-z]{5})"', read)
            ]
            assert steps == list(range(steps[0] or 0, (steps[0] or 0) + TOKENS))
            with StepTimes(times) as made:
                assert all(made[step or 0] for step in steps)
    finally:
        server.stop()
        server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
