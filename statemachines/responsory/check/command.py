"""The command: files or standard input in, a verdict for each out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from responsory.check.checker import CHECKS, StreamChecker
from responsory.check.page import page
from responsory.check.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from responsory.check.report import Report

ACCEPTED, REFUSED, UNREADABLE, INTERRUPTED = 0, 1, 2, 130
PIECE = 1 << 16
"""Bytes read at a time."""


def main(arguments: Sequence[str]) -> int:
    """The exit status: the worst of the files' own (0 accepted, 1 refused, 2 not to be read)."""
    options = _parser().parse_args(arguments)
    try:
        if options.rules:
            _say(page())
            return ACCEPTED
        status = max(_check(name, options) for name in options.files)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; what is still buffered has nowhere to go either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REFUSED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m responsory.check",
        description="Check streams of the Responses, Chat Completions and Completions APIs.",
        epilog="Exit status: 0 accepted, 1 a rule is broken, 2 there was no stream to read.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("files", nargs="*", default=[], metavar="FILE", help="a stream; - is stdin")
    what.add_argument("--rules", action="store_true", help="print the rules, as Markdown")
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
    if name == "-":
        yield from _read(sys.stdin.buffer)
        return
    with Path(name).open("rb") as file:
        yield from _read(file)


def _read(file: BinaryIO) -> Iterator[bytes]:
    # What is there now: a live stream is judged while it comes.
    read = getattr(file, "read1", file.read)
    while piece := cast("bytes", read(PIECE)):
        yield piece


def _say_report(name: str, report: Report, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"file": name, **report.as_json()}) + "\n")
    else:
        _say(f"{name}: {report}\n")


def _say_unreadable(name: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        _say(json.dumps({"file": name, "accepted": False, "unreadable": reason}) + "\n")
    else:
        _say(f"{name}: cannot be read: {reason}\n")


def _say(text: str) -> None:
    """To standard output, whatever its encoding lacks written as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
