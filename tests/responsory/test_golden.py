"""Stored logs of the golden cases: frames and bodies are what they were, byte for byte.

Needs the library alone. Who writes the folders, and from what: ``docs/fixtures.md``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden_files import bodies, has_logprobs, log_name, rendered

from responsory import EventLog, Response
from responsory import events as ev
from responsory.errors import LogError
from responsory.projections import chat_body, completion_body
from responsory.testing import check_log, fold_chat, fold_completions, fold_responses

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden"
CASES = sorted({path.parent.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.sse")})


def stored(name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (GOLDEN / name).iterdir()}


def logs_in(files: dict[str, bytes]) -> list[EventLog]:
    """The log of each choice, in index order."""
    count = sum(name.startswith("log.") for name in files)
    return [
        EventLog.from_lines(files[log_name(index, count)].splitlines(keepends=True))
        for index in range(count)
    ]


def test_there_are_golden_cases() -> None:
    assert len(CASES) > 40


@pytest.mark.parametrize("name", CASES)
def test_a_stored_log_gives_frames_and_bodies_byte_for_byte(name: str) -> None:
    files = stored(name)
    made = rendered(logs_in(files))
    assert sorted(made) == sorted(files)
    for file, data in made.items():
        assert data.decode() == files[file].decode(), file


@pytest.mark.parametrize("name", CASES)
def test_a_machine_can_have_written_it(name: str) -> None:
    for log in logs_in(stored(name)):
        check_log(log[:])
        machine = Response.replay(log)
        assert machine.terminal
        assert machine.seq == len(log)
        assert Response.replay(log.compact()).view() == machine.view()


@pytest.mark.parametrize("name", CASES)
def test_compaction_changes_no_body(name: str) -> None:
    logs = logs_in(stored(name))
    compacted = [log.compact() for log in logs]
    scored = has_logprobs(logs)
    assert bodies(compacted, scored) == bodies(logs, scored)
    assert [EventLog.from_lines(log.lines()) for log in compacted] == compacted


@pytest.mark.parametrize("name", CASES)
def test_a_failure_alone_has_no_body_in_chat_and_completions(name: str) -> None:
    files = stored(name)
    logs = logs_in(files)
    failed = any(isinstance(log[-1], ev.Failed) for log in logs)
    assert ("chat.json" not in files) == ("completions.json" not in files) == failed
    if failed:
        for body in (chat_body, completion_body):
            with pytest.raises(LogError, match="ended, and not in a failure"):
                body(logs)


@pytest.mark.parametrize("name", CASES)
def test_a_stream_folds_to_the_body(name: str) -> None:
    files = {file: data for file, data in stored(name).items() if not file.startswith("log.")}
    if "responses.sse" in files:
        body = json.loads(files["responses.json"])
        folded = fold_responses([files["responses.sse"]])
        if body["status"] == "cancelled":  # which no frame says
            folded |= {"status": "cancelled", "usage": body["usage"]}
        assert folded == body
    if "chat.json" not in files:
        for stream, fold in (("chat.sse", fold_chat), ("completions.sse", fold_completions)):
            assert fold([files[stream]])["error"]["code"] == "server_error"
        return
    chat, folded = json.loads(files["chat.json"]), fold_chat([files["chat.sse"]])
    assert folded["usage"] == chat["usage"]
    for choice in chat["choices"]:
        assert same_choice(folded["choices"][choice["index"]], choice)
    completion = json.loads(files["completions.json"])
    folded = fold_completions([files["completions.sse"]])
    assert folded["usage"] == completion["usage"]
    for choice in completion["choices"]:
        assert same_choice(folded["choices"].get(choice["index"], {"text": ""}), choice)


def same_choice(folded: dict[str, Any], choice: dict[str, Any]) -> bool:
    """A choice folded from a stream and one of the body. An absent value, null and an empty one
    mean the same; ``logprobs`` of chat is shown as the list of its tokens."""
    logprobs = choice["logprobs"]
    shown = logprobs["content"] if logprobs and "content" in logprobs else logprobs
    return bool(_filled(folded) == _filled({**choice, "logprobs": shown, "index": None}))


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        filled = {key: _filled(item) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item not in (None, "", [], {})}
    return value
