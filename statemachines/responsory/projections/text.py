"""JSON text as it goes on the wire: compact, one line, non-ASCII characters as themselves.

Server-sent events: WHATWG HTML, section 9.2. Lines end in LF; JSON escapes every control character,
so a frame's data is always one line.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any

DONE = b"data: [DONE]\n\n"
"""The last frame of every stream."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

quote = encode_basestring
"""A JSON string literal, quotes included."""


def dumps(value: Any) -> str:
    """Compact JSON. Raises ValueError for NaN and infinities."""
    return _ENCODER.encode(value)
