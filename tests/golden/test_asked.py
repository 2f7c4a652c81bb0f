"""What requests that asked for more get, byte for byte: ``fixtures/asked``.

``pytest --update-golden`` writes the folders instead of comparing.
"""

from __future__ import annotations

import json

import pytest

from golden.asked import CASES, Case
from golden.playing import FIXTURES
from responsory import EventLog, Response
from responsory.check import check_stream
from responsory.testing import check_log

ASKED = FIXTURES / "asked"


def log_files(case: Case) -> dict[str, bytes]:
    return {f"log.{at}.jsonl": b"".join(log.lines()) for at, log in enumerate(case.logs)}


@pytest.mark.parametrize("name", CASES)
def test_the_folder_is_what_the_code_gives(name: str, request: pytest.FixtureRequest) -> None:
    case, folder = CASES[name], ASKED / name
    due = {**log_files(case), **case.files(case.logs)}
    if request.config.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in due.items():
            (folder / file).write_bytes(data)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name: data.decode() for name, data in found.items()} == {
        name: data.decode() for name, data in due.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_the_stored_log_gives_the_same(name: str) -> None:
    case = CASES[name]
    stored = [EventLog.from_lines(data.splitlines(True)) for data in log_files(case).values()]
    assert stored == list(case.logs)
    for log in stored:
        check_log(log[:])
        assert Response.replay(log.compact()).view() == Response.replay(log).view()
    assert case.files(stored) == case.files(case.logs)
    compacted = case.files([log.compact() for log in stored])
    assert compacted["body.json"] == case.files(stored)["body.json"]


@pytest.mark.parametrize("name", CASES)
def test_the_checker_takes_the_stream_and_folds_it_to_the_body(name: str) -> None:
    files = CASES[name].files(CASES[name].logs)
    report = check_stream(files["stream.sse"])
    assert report.accepted, str(report)
    body = json.loads(files["body.json"])
    if b'"usage":' not in files["stream.sse"]:
        body["usage"] = None
    assert report.result == body


def test_there_is_no_other_folder() -> None:
    assert {path.parent.relative_to(ASKED).as_posix() for path in ASKED.rglob("*.sse")} == set(
        CASES
    )
