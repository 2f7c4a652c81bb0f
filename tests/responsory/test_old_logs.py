"""Logs as they were stored by each version of the format: what is on a disk stays readable.

The files under ``fixtures/logs`` are never written again. A new version of the format gets a folder
of its own beside ``v1``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from responsory import EventLog, Response
from responsory import events as ev
from responsory.projections import ResponsesStream, chat_body, completion_body, response_body
from responsory.testing import check_log
from responsory.upcasts import CURRENT

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
STORED = sorted(LOGS.glob("v*/*.jsonl"))
every_log = pytest.mark.parametrize(
    "path", STORED, ids=[path.relative_to(LOGS).as_posix() for path in STORED]
)


def read(path: Path) -> EventLog:
    with path.open("rb") as lines:
        return EventLog.from_lines(lines)


@every_log
def test_it_is_read_and_replayed(path: Path) -> None:
    log = read(path)
    machine = Response.replay(log)
    assert machine.seq == log[-1].seq + 1
    assert machine.terminal == log.terminal
    if not log.compacted:
        check_log(log[:])


@every_log
def test_it_gives_the_stored_body(path: Path) -> None:
    log = read(path)
    body = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert response_body(log) == body
    # Key order is part of what clients of a stored response saw.
    assert json.dumps(response_body(log)) == json.dumps(body)
    if log.terminal and not log.compacted:
        assert response_body(log.compact()) == body


@every_log
def test_every_projection_reads_it(path: Path) -> None:
    log = read(path)
    frames = ResponsesStream().feed(0, list(log))
    shown = [event for event in log if not isinstance(event, ev.Cancelled)]
    assert len(frames) == len(shown) + log.terminal
    if log.terminal and not isinstance(log[-1], ev.Failed):
        text = chat_body([log])["choices"][0]["message"]["content"]
        assert completion_body([log])["choices"][0]["text"] == (text or "")


@every_log
def test_it_is_stored_again_as_a_log_that_is_equal(path: Path) -> None:
    log = read(path)
    written = list(log.lines())
    assert EventLog.from_lines(written) == log
    # A log is written as the first version that can tell it: of this format, as it was.
    if path.parent.name.split(".")[0] == f"v{CURRENT.format}":
        assert b"".join(written) == path.read_bytes()


def test_the_second_machine_is_there() -> None:
    logs = [read(path) for path in LOGS.glob("v1.2/*.jsonl")]
    events = [event for log in logs for event in log]
    assert all(
        next(log.rows()) == {**CURRENT._asdict(), "compacted": log.compacted} for log in logs
    )
    assert any(isinstance(event, ev.TextDelta) and event.tokens for event in events)
    assert any(isinstance(event, ev.Completed) and event.ids for event in events)
    entries = [
        entry for event in events if isinstance(event, ev.TextDone) for entry in event.logprobs
    ]
    assert any(entry.logprob is None for entry in entries)
    assert any(entry.id is not None for entry in entries)


def test_the_shapes_that_matter_are_there() -> None:
    logs = [read(path) for path in LOGS.glob("v1/*.jsonl")]
    assert len(logs) >= 6
    assert any(log.compacted for log in logs)
    assert any(not log.terminal for log in logs)
    assert any(event.logprobs for log in logs for event in log if isinstance(event, ev.TextDone))
    assert {type(event) for log in logs for event in log} == set(ev.EVENTS)


@pytest.mark.parametrize("folder", sorted(LOGS.glob("v*")), ids=lambda folder: folder.name)
def test_the_files_are_what_they_were(folder: Path) -> None:
    sums = (folder / "SHA256SUMS").read_text().splitlines()
    due = {name: digest for digest, name in (line.split("  ") for line in sums)}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }
    assert found == due
    assert {Path(name).stem for name in found if name.endswith(".jsonl")} == {
        Path(name).stem for name in found if name.endswith(".json")
    }
