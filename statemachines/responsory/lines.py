"""JSON Lines (jsonlines.org): one row of a stored log a line, UTF-8.

What Python's own reader lets pass is refused here: NaN and infinities, which are not JSON, and an
object that has a key twice, of which it would drop one (RFC 8259, section 4). A line that is nested
too deep for the parser is refused like any other.
"""

from __future__ import annotations

import json
from typing import Any

from responsory.errors import LogError, shown
from responsory.values import JSON

BREAKS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Line ends to ``str.splitlines`` though not to JSON: escaped, a line is one whoever splits it."""


def to_line(row: JSON) -> bytes:
    """A row that was checked as one line, its end included."""
    return f"{_ENCODER.encode(row).translate(BREAKS)}\n".encode()


def from_line(line: str | bytes) -> JSON:
    """The row of a line, with or without its end. Raises LogError."""
    try:
        text = line.decode() if isinstance(line, bytes) else line
        if not text.strip():
            raise LogError("an empty line")
        if text.startswith("\ufeff"):
            raise LogError("not JSON: it begins with a byte order mark")
        return _DECODER.decode(text)  # type: ignore[no-any-return]  # JSON by construction
    except json.JSONDecodeError as error:
        raise LogError(f"not JSON: {error.msg}, at column {error.colno}") from None
    except RecursionError:
        raise LogError("not JSON that can be read: nested too deep") from None
    except UnicodeDecodeError as error:
        raise LogError(f"not UTF-8: {error.reason}, at byte {error.start + 1}") from None
    except ValueError as error:
        raise LogError(f"not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the key {shown(name)} comes twice")
        members[name] = value
    return members


def _constant(name: str) -> float:
    raise ValueError(f"there is no {name}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
