"""The access log as text: one JSON object a line. A slow disk holds up nobody.

The lines are made and written by a thread; when that is ``MOST_WAITING`` lines behind, further ones
are left out and counted.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from typing import Any, cast

import attrs

from antiphon.errors import StartupError
from antiphon.transport.access_log import Entry
from antiphon.transport.counted import Counted

MOST_WAITING = 10_000
STDOUT = "-"


@contextmanager
def writing(target: str, counted: Counted) -> Iterator[Callable[[Entry], None]]:
    """What writes entries to the file ``target`` (``-``: standard output) until the block ends.

    A file is opened anew when it has been moved away. Raises ``StartupError`` for one that cannot
    be opened.
    """
    try:
        handler = (
            logging.StreamHandler(sys.stdout)
            if target == STDOUT
            else WatchedFileHandler(target, encoding="utf-8")
        )
    except OSError as error:
        raise StartupError(f"Cannot write the access log {target}: {error.strerror}.") from None

    def lose(_: logging.LogRecord) -> None:
        counted.access_lines_lost += 1

    handler.handleError = lose  # type: ignore[method-assign, assignment]
    handler.setFormatter(_Lines())
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    putting = _Putting(waiting, lose)
    listener = QueueListener(waiting, handler)
    listener.start()
    try:
        yield lambda entry: putting.emit(_record(entry))
    finally:
        listener.stop()
        with suppress(OSError):  # The disk is full still.
            handler.close()


class _Putting(QueueHandler):
    """Puts records as they are: to make their text is the listener's work."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[logging.LogRecord],
        lose: Callable[[logging.LogRecord], None],
    ) -> None:
        super().__init__(waiting)
        self._waiting = waiting
        self._lose = lose

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put_nowait(record)
        else:
            self._lose(record)


def _record(entry: Entry) -> logging.LogRecord:
    """Made here, where a logger would look for the caller's file and line."""
    return logging.LogRecord("antiphon.access", logging.INFO, "", 0, entry, None, None)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = cast("Entry", record.msg)
        when = datetime.fromtimestamp(record.created, UTC)
        told: dict[str, Any] = {"time": when.isoformat(timespec="milliseconds")}
        told["client"] = entry.client
        if entry.peer is not None:
            told |= attrs.asdict(entry.peer)
        for name in ("id", "method", "path", "status", "bytes"):
            told[name] = getattr(entry, name)
        return json.dumps({**told, "seconds": round(entry.seconds, 6)})
