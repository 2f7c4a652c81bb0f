"""The access log as text: one JSON object a line. A slow disk holds up nobody.

The lines are made and written by a thread; when that is ``MOST_WAITING`` lines behind, further ones
are left out and counted.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from antiphon.errors import StartupError
from antiphon.transport.access_log import Entry
from antiphon.transport.counted import Counted

MOST_WAITING = 10_000
LAST_LINES_S = 1.0
"""What the last lines get to be written at the end."""
STDOUT = "-"

_Waiting: TypeAlias = "queue.SimpleQueue[tuple[float, Entry] | None]"


@contextmanager
def writing(target: str, counted: Counted) -> Iterator[Callable[[Entry], None]]:
    """What writes entries to the file ``target`` (``-``: standard output) until the block ends.

    A file is opened anew when it has been moved away. Raises ``StartupError`` for one that cannot
    be opened.
    """
    try:
        lines = _Lines(_standard_output() if target == STDOUT else _WatchedFile(target))
    except OSError as error:
        why = "nobody reads the pipe" if error.errno == errno.ENXIO else error.strerror
        raise StartupError(f"Cannot write the access log {target}: {why}.") from None
    waiting: _Waiting = queue.SimpleQueue()
    # Nobody waits for it at the end of the process: it may hang in a write for ever.
    thread = threading.Thread(target=_write_all, args=(waiting, lines, counted), daemon=True)
    thread.start()

    def write(entry: Entry) -> None:
        if waiting.qsize() < MOST_WAITING:
            waiting.put((time.time(), entry))
        else:
            counted.access_lines_lost += 1

    try:
        yield write
    finally:
        waiting.put(None)
        thread.join(LAST_LINES_S)
        if not thread.is_alive():
            lines.file.close()


def _write_all(waiting: _Waiting, lines: _Lines, counted: Counted) -> None:
    while (each := waiting.get()) is not None:
        try:
            lines.write(*each)
        except OSError:
            counted.access_lines_lost += 1


class _Lines:
    """Writes entries to ``file``, each on a line of its own."""

    def __init__(self, file: _Descriptor) -> None:
        self.file = file
        self._is_torn = False
        """Whether the last line has no end."""

    def write(self, when: float, entry: Entry) -> None:
        """Raises ``OSError`` where the line is lost, or its end."""
        self.file.look()
        line = b"\n" * self._is_torn + _line(when, entry).encode() + b"\n"
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        finally:
            if len(rest) < len(line):
                self._is_torn = bool(rest)


class _Descriptor:
    """A file that is written without a buffer: one would be lost or waited for at the end."""

    def __init__(self, number: int) -> None:
        self._number = number

    def look(self) -> None:
        """Have the right file open."""

    def write(self, data: memoryview) -> int:
        """How many of the bytes were taken."""
        return os.write(self._number, data)

    def close(self) -> None:
        os.close(self._number)


def _standard_output() -> _Descriptor:
    if sys.stdout is None:  # Closed by whoever started the process.
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return _Descriptor(os.dup(sys.stdout.fileno()))


class _WatchedFile(_Descriptor):
    """The file at ``path``, whichever that is at the time."""

    def __init__(self, path: str) -> None:
        super().__init__(_opened(path))
        self._path = Path(path).absolute()

    def look(self) -> None:
        """Raises ``OSError`` where no file can be there; the next line tries again."""
        with suppress(FileNotFoundError):
            if os.path.samestat(self._path.stat(), os.fstat(self._number)):
                return
        opened = _opened(self._path)
        os.close(self._number)
        self._number = opened


def _opened(path: str | Path) -> int:
    """Open to append. A pipe without a reader is ``ENXIO``, where ``open`` would wait for one."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    number = os.open(path, flags, 0o666)
    os.set_blocking(number, True)
    return number


def _line(when: float, entry: Entry) -> str:
    time_of = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")
    told: dict[str, Any] = {"time": time_of, "client": entry.client}
    if entry.peer is not None:
        told |= attrs.asdict(entry.peer)
    for name in ("id", "method", "path", "status", "bytes"):
        told[name] = getattr(entry, name)
    return json.dumps({**told, "seconds": round(entry.seconds, 6)})
