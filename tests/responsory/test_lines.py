"""JSON Lines: a log's rows as bytes and back, and lines that are no JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from responsory import EventLog
from responsory.errors import LogError
from responsory.lines import from_line
from responsory.testing import a_response

HEADER = '{"format":1,"machine":1,"compacted":false}'
CREATED = '["created",0,"r1",5,false,{"model":"tiny"}]'


def test_lines_of_a_log() -> None:
    log = a_response(echo={"model": "tiny", "n": 5.0}).text("Hi", "é\n\u2028").finish().log
    header, created, *rest = log.lines()
    assert header == b'{"format":1,"machine":1,"compacted":false}\n'
    assert created == b'["created",0,"r1",1764500000,false,{"model":"tiny","n":5.0}]\n'
    assert rest[4] == '["text_delta",5,0,0,"é\\n\\u2028"]\n'.encode()
    assert [json.loads(line) for line in log.lines()] == [*log.rows()]


def test_a_file(tmp_path: Path) -> None:
    log = a_response().text("Hi", "\x85\u2028\u2029\r\n").finish().log
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(log.lines()))
    with path.open("rb") as lines:
        assert EventLog.from_lines(lines) == log
    with path.open(encoding="utf-8") as text:
        assert EventLog.from_lines(text) == log
    assert EventLog.from_lines(path.read_text(encoding="utf-8").splitlines()) == log
    assert EventLog.from_lines(path.read_bytes().replace(b"\n", b"\r\n").splitlines()) == log


BAD: list[tuple[str | bytes, str]] = [
    ("", "an empty line"),
    (" \n", "an empty line"),
    (b"\n", "an empty line"),
    (CREATED[:-1], "not JSON: Expecting ',' delimiter, at column 43"),
    ('["created', "not JSON: Unterminated string starting at, at column 2"),
    (CREATED * 2, "not JSON: Extra data, at column 44"),
    ("\ufeff" + CREATED, "not JSON: it begins with a byte order mark"),
    (b"\xef\xbb\xbf" + CREATED.encode(), "not JSON: it begins with a byte order mark"),
    (CREATED.encode("utf-16"), "not UTF-8: invalid start byte, at byte 1"),
    (b'["created",0,"\xff"]', "not UTF-8: invalid start byte, at byte 15"),
    (b'["created",0,"\xed\xa0\x80"]', "not UTF-8: invalid continuation byte, at byte 15"),
    ('["text_delta",0,0,0,"a",[["a",NaN,null,[]]]]', "not JSON: there is no NaN"),
    ('["text_delta",0,0,0,"a",[["a",-Infinity,null,[]]]]', "not JSON: there is no -Infinity"),
    ('["text_delta",0,0,0,"a",[["a",1e999,null,[]]]]', "logprobs cannot be inf"),
    ('["created",0,"r1",5,false,{"a":1e999}]', "echo holds inf, which is not JSON"),
    ('["created",0,"r1",5,false,{"b":2,"a":1,"a":1}]', "not JSON: the key 'a' comes twice"),
    ('["created",0,"r1",5,false,{"a":[{"\\u0062":1,"b":2}]}]', "the key 'b' comes twice"),
    ('["created",0,"\\ud800",5,false,{}]', "id holds half a surrogate pair: '\\\\ud800'"),
    ('["created",0,"r1",5,false,{"a":"\\udfff\\ud800"}]', "echo holds half a surrogate pair"),
    (f'["queued",{"9" * 5000}]', "not JSON: Exceeds the limit"),
    ("[" * 200_000, "not JSON that can be read: nested too deep"),
    ('{"a":' * 200_000, "not JSON that can be read: nested too deep"),
    (f'["created",0,"r1",5,false,{{"a":{"[" * 300}{"]" * 300}}}]', "more than 256 levels deep"),
    ("null", "not a row: None"),
    ("{}", "not a row: {}"),
    ("'queued'", "not JSON: Expecting value, at column 1"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=range(len(BAD)))
def test_bad_lines(line: str | bytes, message: str) -> None:
    lines: list[Any] = [HEADER, CREATED, line]
    with pytest.raises(LogError) as caught:
        EventLog.from_lines(lines)
    assert message.replace("\\\\", "\\") in str(caught.value)
    assert caught.value.row == 3
    assert len(str(caught.value)) < 300


def test_a_bad_header_line() -> None:
    for line in ("", "{", HEADER[:-1] + ',"machine":1}', HEADER.replace("1", "NaN")):
        with pytest.raises(LogError, match=r"^row 1: (not JSON|an empty line)"):
            EventLog.from_lines([line, CREATED])


def test_a_pair_that_is_whole_is_text() -> None:
    line = '["created",0,"r1",5,false,{"model":"\\ud83d\\ude00"}]'
    (created,) = EventLog.from_lines([HEADER, line])
    assert getattr(created, "echo") == {"model": "😀"}  # noqa: B009  # of Created alone


def test_a_damaged_file_that_was_opened_as_text(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(a_response().text("a").log.lines()) + b"\xff\n")
    with path.open(encoding="utf-8") as file, pytest.raises(LogError, match="opened as bytes"):
        EventLog.from_lines(file)
    with path.open("rb") as file, pytest.raises(LogError, match=r"^row 7: not UTF-8"):
        EventLog.from_lines(file)


@pytest.mark.parametrize("whole", [b"", "", bytearray()])
def test_lines_are_not_one_text(whole: Any) -> None:
    with pytest.raises(TypeError, match="lines are due, one by one"):
        EventLog.from_lines(whole)


def test_a_key_that_comes_twice_among_many() -> None:
    """In time that grows with the line, so this takes no time."""
    many = ",".join(f'"k{at}":0' for at in range(50_000))
    with pytest.raises(LogError, match="the key 'k49999' comes twice"):
        from_line(f'{{{many},"k49999":1}}')
