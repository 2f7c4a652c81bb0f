"""The command and the page of rules."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from responsory.check import PROFILES, RULES, StreamChecker, check_stream
from responsory.check.command import main
from responsory.check.page import page
from responsory.projections import ChatStream, ResponsesStream, response_body
from responsory.testing import a_response

PAGE = Path(__file__).parents[3] / "docs" / "stream-rules.md"

LOG = a_response().text("Hi", " there").finish().log
GOOD = b"".join(ResponsesStream().feed(0, LOG[:]))
CHAT = b"".join(ChatStream().feed(0, LOG[:]))
BROKEN = GOOD.replace(b'"sequence_number":5', b'"sequence_number":7')
REFUSAL = """\
refused: seq-dense at event 6, line 16, sequence_number 7
  rule: `sequence_number` is 0, 1, 2, …; a server may leave it out of all events alone.
  found: sequence_number 7
  due: 5
  legal: response.output_text.delta, response.output_text.done
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    made = {
        "good": GOOD,
        "chat": CHAT,
        "broken": BROKEN,
        "cut": GOOD[: GOOD.index(b"event: response.output_text.done")],
        "empty": b"",
        "json": b'{"id": "resp_1"}\n',
        "gzip": gzip.compress(GOOD),
    }
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return {name: str(tmp_path / name) for name in made}


def test_accepted(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([files["good"], files["chat"]]) == 0
    good, chat = capsys.readouterr().out.splitlines()
    assert good == f"{files['good']}: accepted: 11 events, completed"
    assert chat == f"{files['chat']}: accepted: 5 events, stop"


def test_refused(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([files["broken"]]) == 1
    assert capsys.readouterr().out == f"{files['broken']}: {REFUSAL}"


def test_a_cut_stream_is_told_what_was_due(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([files["cut"]]) == 1
    out = capsys.readouterr().out
    assert "refused: one-terminal at event 7, line 18\n" in out
    assert "legal: response.output_text.delta, response.output_text.done\n" in out
    assert main(["--profile", "foreign", files["cut"]]) == 1
    assert "refused: terminal-due at event 7, line 18\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["empty", "json", "gzip"])
def test_no_stream(name: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([files[name]]) == 2
    assert "legal: response.created, chat.completion.chunk, text_completion" in (
        capsys.readouterr().out
    )


def test_options_stand_anywhere(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [files["good"], "--json", files["chat"]],
        [files["good"], files["chat"], "--json"],
        ["--profile", "openai", files["good"], "--json", files["chat"], "--api", "chat"],
    ):
        main(arguments)
        reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [report["file"] for report in reports] == [files["good"], files["chat"]]


def test_a_name_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two\nlines\x1b[2J"
    path.write_bytes(GOOD)
    assert main([str(path), str(path) + "\r"]) == 2
    good, none = capsys.readouterr().out.splitlines()
    assert good == f"{tmp_path}/two\\nlines\\x1b[2J: accepted: 11 events, completed"
    assert none.startswith(f"{tmp_path}/two\\nlines\\x1b[2J\\r: cannot be read: ")


def test_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([""]) == 2
    assert capsys.readouterr().out == "'': cannot be read: the name is empty\n"


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "none")]) == 2
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path}: cannot be read: Is a directory"
    assert second == f"{tmp_path}/none: cannot be read: No such file or directory"
    assert main(["--json", str(tmp_path)]) == 2
    assert json.loads(capsys.readouterr().out)["unreadable"] == "Is a directory"


def test_the_worst_status_counts(files: dict[str, str]) -> None:
    assert main([files["good"], files["broken"], files["good"]]) == 1
    assert main([files["broken"], files["empty"], files["good"]]) == 2


def test_json(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", files["good"], files["broken"]]) == 1
    good, broken = map(json.loads, capsys.readouterr().out.splitlines())
    assert good == {
        "file": files["good"],
        "accepted": True,
        "profile": "openai",
        "api": "responses",
        "events": 11,
        "outcome": "completed",
        "violation": None,
        "result": response_body(LOG),
    }
    assert broken["result"] is None
    assert broken["violation"] == {
        "rule": "seq-dense",
        "sentence": RULES["seq-dense"].sentence,
        "event": 6,
        "line": 16,
        "sequence_number": 7,
        "found": "sequence_number 7",
        "due": "5",
        "legal": ["response.output_text.delta", "response.output_text.done"],
    }


def test_the_api_can_be_forced(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--api", "chat", "--profile", "foreign", files["good"]]) == 1
    assert "object-keys at event 1" in capsys.readouterr().out
    assert main(["--api", "responses", files["chat"]]) == 1
    assert "object-keys at event 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--json"],
        ["--profile", "x", "-"],
        ["--api", "x", "-"],
        ["--x"],
        ["--rules", "x"],
        ["x", "--rules"],
    ],
)
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err


def run(*arguments: str, data: bytes = b"", encoding: str = "utf-8") -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "responsory.check", *arguments],
        input=data,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    return done.returncode, done.stdout, done.stderr


def test_standard_input() -> None:
    assert run("-", data=GOOD) == (0, b"-: accepted: 11 events, completed\n", b"")
    status, out, errors = run("-", data=BROKEN, encoding="ascii")
    assert (status, errors) == (1, b"")
    assert out.decode("ascii").startswith("-: refused: seq-dense")
    assert "\\u2026" in out.decode("ascii")


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems take text alone")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "odd \udcff"
    path.write_bytes(GOOD)
    status, out, errors = run(str(path))
    assert (status, errors) == (0, b"")
    assert b"odd \\udcff: accepted" in out


def test_nobody_reads_the_output(files: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "responsory.check", *[files["good"]] * 3000],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""
    assert process.returncode == 1


def shell(redirected: str, path: str) -> tuple[int, str, str]:
    """Run by a shell, since only that can start a process without a standard stream."""
    command = f'exec "$0" -m responsory.check {redirected}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, path], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("redirected", "out", "error"),
    [
        ("- <&-", "-: cannot be read: standard input is closed\n", ""),
        ('"$1" >&-', "", "python -m responsory.check: standard output is closed\n"),
        ("--rules >&-", "", "python -m responsory.check: standard output is closed\n"),
        ('"$1" >&- 2>&-', "", ""),
    ],
)
def test_a_closed_standard_stream(
    redirected: str, out: str, error: str, files: dict[str, str]
) -> None:
    assert shell(redirected, files["good"]) == (2, out, error)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("what", ['"$1"', "--rules"])
def test_an_output_that_takes_nothing(what: str, files: dict[str, str]) -> None:
    error = "python -m responsory.check: cannot write: No space left on device\n"
    assert shell(f"{what} >/dev/full", files["good"]) == (2, "", error)


@pytest.mark.skipif(os.name != "posix", reason="needs pipes that can be selected")
def test_an_input_that_does_not_block_is_waited_for() -> None:
    """The second half is written once the first was read: the process has seen an empty pipe."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    broken = BROKEN.index(b'"sequence_number":7')
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, str(reading), str(writing)],
        stdin=reading,
        stdout=subprocess.PIPE,
        pass_fds=(reading, writing),
        env={**os.environ, "FIRST": BROKEN[:broken].decode(), "REST": BROKEN[broken:].decode()},
    ) as process:
        os.close(reading)
        os.close(writing)
        out, _ = process.communicate()
    assert process.returncode == 1
    assert out.startswith(b"-: refused: seq-dense")


WAITS = """\
import os, select, sys
from responsory.check import command

writing = int(sys.argv[2])
pieces = [os.environ["REST"], os.environ["FIRST"], ""]

def waited(readers, writers, others):
    os.write(writing, pieces.pop().encode() or b": nothing yet\\n\\n")

select.select = waited
sys.exit(command.main(["-"]))
"""
"""The command, where each wait for more brings more."""


def test_a_live_stream_is_refused_at_once(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Live(io.BytesIO):
        """Ends in an error if it is read past the fault."""

        def read1(self, size: int | None = -1, /) -> bytes:
            assert self.tell() <= BROKEN.index(b'"sequence_number":7') + 100
            return super().read1(100)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Live(BROKEN)))
    assert main(["-"]) == 1


# --- the library ------------------------------------------------------------------------------


def test_a_stream_that_comes_bit_by_bit() -> None:
    checker = StreamChecker()
    for piece in (GOOD[:500], b"", GOOD[500:]):
        checker.feed(piece)
        assert checker.violation is None
    report = checker.close()
    assert report.accepted
    assert report is checker.close()
    with pytest.raises(ValueError, match="closed"):
        checker.feed(b"x")
    assert str(report) == "accepted: 11 events, completed"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_any_type(kind: type[bytes]) -> None:
    assert check_stream(kind(GOOD)) == check_stream(GOOD)
    assert check_stream([kind(GOOD[:300]), kind(GOOD[300:])]) == check_stream(GOOD)
    assert check_stream(memoryview(GOOD + GOOD)[::2]) == check_stream((GOOD + GOOD)[::2])


@pytest.mark.parametrize("piece", [GOOD.decode(), 5, None])
def test_what_is_not_bytes(piece: Any) -> None:
    with pytest.raises(
        TypeError, match=f"bytes-like object is required, not '{type(piece).__name__}'"
    ):
        StreamChecker().feed(piece)


def test_a_malformed_event_is_counted_and_a_missing_one_is_not() -> None:
    for data, events, place in (
        (GOOD + b"data: \xff\n\n", 12, 12),
        (GOOD[:-1], 11, 11),
        (GOOD[: GOOD.index(b"event: response.output_text.done")], 6, 7),
        (b"{}", 0, 1),
        (b"", 0, 1),
    ):
        report = check_stream(data)
        assert report.violation is not None
        assert (report.events, report.violation.event) == (events, place)


def test_what_was_taken_for_a_cancel_is_told() -> None:
    cancelled = a_response().text("Hi").cancel().log
    for stream, missing in (
        (ResponsesStream(), "terminal event"),
        (ChatStream(), "finish reason"),
    ):
        report = check_stream(stream.feed(0, cancelled[:]))
        assert report.outcome == "cancelled"
        assert str(report).endswith(f", cancelled (no {missing} came)")
    word = {"finish_reason": "cancelled", "index": 0, "text": ""}
    chunk = {"object": "text_completion", "choices": [word]}
    report = check_stream(f"data: {json.dumps(chunk)}\n\n".encode(), profile="foreign")
    assert str(report) == "accepted: 1 event, cancelled"


def test_a_fault_is_known_as_soon_as_it_has_come() -> None:
    checker = StreamChecker()
    place = BROKEN.index(b'"sequence_number":7')
    known = []
    for piece in (BROKEN[:place], BROKEN[place:], b"\xff\n\n"):
        checker.feed(piece)
        known.append(checker.violation)
    report = checker.close()
    assert known == [None, report.violation, report.violation]
    assert report.violation is not None
    assert report.violation.rule == "seq-dense"
    assert report.events == 6
    assert not report.accepted
    assert report.readable
    assert report.result is None
    assert report.outcome == ""


def test_one_event() -> None:
    data = b'data: {"error":{"message":"No."}}\n\n'
    report = check_stream(data, profile="foreign", api="chat")
    assert str(report) == "accepted: 1 event, failed"
    assert report.result == {"error": {"message": "No."}}


def test_unknown_profiles_and_apis() -> None:
    with pytest.raises(ValueError, match="openai, openresponses, foreign"):
        StreamChecker(profile="vllm")  # type: ignore[arg-type]  # the error is the test
    with pytest.raises(ValueError, match="responses, chat, completions"):
        check_stream(b"", api="assistants")  # type: ignore[arg-type]  # the error is the test


# --- the page ---------------------------------------------------------------------------------


def test_the_page_of_rules_is_fresh() -> None:
    """``python -m responsory.check --rules > docs/stream-rules.md`` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rules"]) == 0
    out = capsys.readouterr().out
    assert out == page()
    for rule in RULES.values():
        assert out.count(f"| `{rule.name}` |") == 1
        assert rule.sentence in out
    for profile in PROFILES.values():
        assert profile.sentence in out


def test_names_are_kebab_case_and_profiles_nest() -> None:
    for name, rule in RULES.items():
        assert name == rule.name
        assert name.replace("-", "").isalnum()
        assert name == name.lower()
        assert rule.sentence.endswith(".")
        assert ("openai" in rule.profiles) == ("openresponses" in rule.profiles)


def test_the_example_on_the_page_is_what_the_command_says() -> None:
    report = check_stream(GOOD.replace(b'"sequence_number":4', b'"sequence_number":7'))
    assert f"stream.sse: {report}" in page()
