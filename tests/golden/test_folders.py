"""Golden folders themselves: what a difference looks like, and what writing leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import folders


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(folders, "GOLDEN", tmp_path)
    return tmp_path


def test_writing_leaves_exactly_the_files(golden: Path) -> None:
    folders.write("a/b", {"log.jsonl": b"1\n", "chat.json": b"{}\n"})
    folders.write("a/b", {"log.jsonl": b"2\n"})
    assert folders.read("a/b") == {"log.jsonl": b"2\n"}
    assert folders.names() == {"a/b"}
    folders.write("a/b", {})
    assert folders.names() == set()
    assert not (golden / "a" / "b").exists()


def test_equal_folders_differ_in_nothing() -> None:
    assert folders.difference("x", {"chat.json": b"{}\n"}, {"chat.json": b"{}\n"}) == ""


def test_a_difference_names_the_file_and_shows_the_key() -> None:
    found, due = b'{"id":"r1","status":"completed"}', b'{"id":"r1","status":"failed"}'
    told = folders.difference("think/x", {"responses.json": found}, {"responses.json": due})
    assert "think/x/responses.json" in told
    assert '- "status": "completed"' in told
    assert '+ "status": "failed"' in told


def test_a_missing_file_and_one_too_many_are_told() -> None:
    told = folders.difference("x", {"old.sse": b"data: 1\n\n"}, {"new.sse": b"data: 2\n\n"})
    assert "x/old.sse" in told
    assert "x/new.sse" in told
    assert told.count("(no such file)") == 2


def test_bytes_that_only_look_alike_differ() -> None:
    told = folders.difference("x", {"a.sse": b"data: 1\r\n\n"}, {"a.sse": b"data: 1\n\n"})
    assert told


def test_a_long_difference_is_cut() -> None:
    many = "\n".join(map(str, range(500))).encode()
    told = folders.difference("x", {"a.sse": many}, {"a.sse": b""})
    assert len(told.split("\n")) == folders.SHOWN + 1
    assert "lines more" in told


def test_a_body_that_differs_in_spaces_alone_is_told() -> None:
    told = folders.difference("x", {"a.json": b'{"a": 1}\n'}, {"a.json": b'{"a":1}\n'})
    assert told
