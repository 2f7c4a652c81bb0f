"""A reader of server-sent events that loses nothing: WHATWG HTML, section 9.2, made strict.

A browser drops what it does not understand: a field with an unknown name, an event without data,
an event whose blank line never came, bytes that are not UTF-8. A checker must not, so each of these
is a refusal here, with the line. What the standard lets a server choose (line ends, a byte order
mark, several lines of data) is read, and noted as an oddity. The result does not depend on how the
bytes are cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from responsory.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_END = re.compile(rb"\r\n?|\n")
FIRST_LINE = re.compile(rb":|(?:event|data|id|retry)(?::|\Z)")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN = 40
"""Bytes of a line that a report shows."""
MAX_SIZE = 1 << 26
"""Bytes of an event, or of a comment. What is longer would fill the memory before it ends."""


class Malformed(Exception):
    """Bytes that are no server-sent events, or lose one; ``rule`` is the rule they break."""

    def __init__(self, rule: str, line: int, found: str) -> None:
        super().__init__(found)
        self.rule = rule
        self.line = line
        self.found = found


@immutable
class Oddity:
    """Something that the standard allows and that a plain stream does not have."""

    line: int
    what: str


@immutable
class Frame:
    """One event: its number in the stream from 1, the number of its first line, its ``event:``
    name if it has one, its data (several lines joined by LF), and the first oddity in it or
    before it."""

    number: int
    line: int
    name: str | None
    data: str
    oddity: Oddity | None


class Reader:
    """Bytes in any pieces in, whole events out. ``events`` and ``line`` count what was read."""

    def __init__(self) -> None:
        self.events = 0
        self.line = 0
        self.oddity: Oddity | None = None
        """The first since the last event."""
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._after_cr = False
        self._begun = False
        self._start()

    def _start(self) -> None:
        self._first = 0
        """The line on which the open event began, 0 when none is open."""
        self._size = 0
        """Bytes of its lines so far."""
        self._name: str | None = None
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The events that end in these bytes. The iterator must be used up before the next call.
        Raises Malformed, after the events before the fault."""
        start = 1 if self._after_cr and data[:1] == b"\n" else 0
        for end in LINE_END.finditer(data, start):
            line = data[start : end.start()]
            start = end.end()
            if self._pending:
                line = b"".join([*self._pending, line])
                self._pending.clear()
                self._pending_size = 0
            self.line += 1
            frame = self._take(line, cr=end.group() != b"\n")
            if frame is not None:
                yield frame
        if data:
            self._after_cr = data.endswith(b"\r")
            if start < len(data):
                self._pending.append(data[start:])
                self._pending_size += len(data) - start
                self._check_pending()

    def _check_pending(self) -> None:
        """A line that has not ended is refused as it would be if it ended now or later."""
        if not self._begun and self._pending_size > len(BYTE_ORDER_MARK) + SHOWN:
            head = b"".join(self._pending)
            if self.line == 0:
                head = head.removeprefix(BYTE_ORDER_MARK)
            self._check_first(head, self.line + 1)
        self._check_size(self._pending_size, self.line + 1)

    def _check_size(self, more: int, number: int) -> None:
        if self._size + more > MAX_SIZE:
            raise Malformed("frame-size", number, f"an event or comment of over {MAX_SIZE} bytes")

    def close(self) -> None:
        """The end of the bytes. Raises Malformed when it cuts a line or an event, or when there
        was no event at all."""
        rest = b"".join(self._pending)
        if self.line == 0:
            rest = rest.removeprefix(BYTE_ORDER_MARK)
        if rest:
            self._check_first(rest, self.line + 1)
            raise Malformed("frame-whole", self.line + 1, "the stream ends inside a line")
        if self._first:
            raise Malformed(
                "frame-whole", self.line, "the stream ends inside an event: no blank line ends it"
            )
        if not self.events:
            raise Malformed("has-events", self.line, "no event")

    def _take(self, line: bytes, *, cr: bool) -> Frame | None:
        if self.line == 1 and line.startswith(BYTE_ORDER_MARK):
            line = line[len(BYTE_ORDER_MARK) :]
            self._note("a byte order mark")
        if cr:
            self._note("a line that ends in CR")
        if not line:
            return self._dispatch() if self._first else None
        self._check_first(line, self.line)
        self._check_size(len(line), self.line)
        text = self._decode(line)
        if text[0] == ":":
            if self._first:
                self._note("a comment inside an event")
            return None
        self._field(text)
        self._first = self._first or self.line
        self._size += len(line)
        return None

    def _check_first(self, line: bytes, number: int) -> None:
        if not self._begun and not FIRST_LINE.match(line):
            raise Malformed("sse-stream", number, f"the first line is {brief_bytes(line)}")
        self._begun = True

    def _decode(self, line: bytes) -> str:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            at = error.start
            raise Malformed(
                "utf8", self.line, f"byte 0x{line[at]:02x} at column {at + 1} is not UTF-8"
            ) from None
        if "\0" in text:
            raise Malformed("utf8", self.line, f"a NUL at column {text.index(chr(0)) + 1}")
        return text

    def _field(self, text: str) -> None:
        field, _, value = text.partition(":")
        if value.startswith(" "):
            value = value[1:]
        elif field in ("data", "event"):
            self._note(f"no space after `{field}:`")
        if field == "data":
            if self._data:
                self._note("a second line of data")
            self._data.append(value)
        elif field == "event":
            if self._first:
                self._note("an `event` line that is not the first of its event")
            self._name = value or None
        elif field in ("id", "retry"):
            self._note(f"the field `{field}`")
        else:
            raise Malformed("sse-field", self.line, f"the line {brief_bytes(text.encode())}")

    def _dispatch(self) -> Frame | None:
        first, name, data = self._first, self._name, self._data
        self._start()
        if not data:
            if name is not None:
                raise Malformed("data-present", first, f"an event {name!a} without data")
            return None
        self.events += 1
        oddity, self.oddity = self.oddity, None
        return Frame(self.events, first, name, "\n".join(data), oddity)

    def _note(self, what: str) -> None:
        self.oddity = self.oddity or Oddity(self.line, what)


def brief_bytes(line: bytes) -> str:
    """The line's beginning, in ASCII."""
    shown = repr(line[:SHOWN])
    return f"{shown}…" if len(line) > SHOWN else shown
