"""The command: files or standard input in, a verdict for each out."""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from responsory.check.checker import CHECKS, StreamChecker
from responsory.check.page import page
from responsory.check.profiles import PROFILES
from responsory.check.report import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import RawIOBase

    from responsory.check.report import Report

ACCEPTED, REFUSED, UNREADABLE, INTERRUPTED = 0, 1, 2, 130
PROGRAM = "python -m responsory.check"
PIECE = 1 << 16
"""Bytes read at a time."""


def main(arguments: Sequence[str]) -> int:
    """The exit status: the worst of the files' own (0 accepted, 1 refused, 2 not to be read)."""
    options = _options(arguments)
    # None where the process was started without one, whatever its type says.
    if cast("object", sys.stdout) is None:
        return _complain("standard output is closed")
    try:
        if options.rules:
            _say(page())
            status = ACCEPTED
        else:
            status = max(_check(name, options) for name in options.files)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return REFUSED
    except OSError as error:
        _drop_output()
        return _complain(f"cannot write: {error.strerror or error}")
    return status


def _drop_output() -> None:
    """What is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(reason: str) -> int:
    if cast("object", sys.stderr) is not None:
        sys.stderr.write(f"{PROGRAM}: {reason}\n")
    return UNREADABLE


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    # Files may stand before, between and after the options.
    options = parser.parse_intermixed_args(arguments)
    if options.rules == bool(options.files):
        parser.error("give FILEs (- is standard input), or --rules alone")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Check streams of the Responses, Chat Completions and Completions APIs.",
        epilog="Exit status: 0 accepted, 1 a rule is broken, 2 there was no stream to read.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a stream; - is stdin")
    parser.add_argument("--rules", action="store_true", help="print the rules, as Markdown")
    parser.add_argument("--profile", choices=PROFILES, default="openai", help="whose streams")
    parser.add_argument("--api", choices=CHECKS, help="default: told by the first event")
    parser.add_argument("--json", action="store_true", help="one JSON object a file")
    return parser


def _check(name: str, options: argparse.Namespace) -> int:
    checker = StreamChecker(profile=options.profile, api=options.api)
    try:
        for piece in _pieces(name):
            checker.feed(piece)
            if checker.violation is not None:
                break
    except OSError as error:
        _say_unreadable(name, error.strerror or str(error), as_json=options.json)
        return UNREADABLE
    report = checker.close()
    _say_report(name, report, as_json=options.json)
    if report.accepted:
        return ACCEPTED
    return REFUSED if report.readable else UNREADABLE


def _pieces(name: str) -> Iterator[bytes]:
    """Raises OSError where there is nothing to read."""
    if name == "-":
        if cast("object", sys.stdin) is None:
            raise OSError("standard input is closed")
        # Past the buffer, to which a pipe that has nothing yet and one that has ended are alike.
        file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        yield from _read(cast("RawIOBase", file))
        return
    if not name:
        raise OSError("the name is empty")
    with Path(name).open("rb", buffering=0) as file:
        yield from _read(file)


def _read(file: RawIOBase) -> Iterator[bytes]:
    """What is there now: a live stream is judged while it comes."""
    while True:
        piece = file.read(PIECE)
        if piece is None:
            # A descriptor that does not block, and has nothing yet.
            select.select([file], [], [])
        elif piece:
            yield piece
        else:
            return


def _say_report(name: str, report: Report, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"file": name, **report.as_json()}) + "\n")
    else:
        _say(f"{_shown(name)}: {report}\n")


def _say_unreadable(name: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"file": name, "accepted": False, "unreadable": reason}) + "\n")
    else:
        _say(f"{_shown(name)}: cannot be read: {reason}\n")


def _shown(name: str) -> str:
    return printable(name) or "''"


def _say(text: str) -> None:
    """To standard output, whatever its encoding lacks written as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
