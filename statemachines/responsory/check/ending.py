"""What a stream ends with, as reports call it."""

from __future__ import annotations

DONE = "[DONE]"
"""The data of the last event."""
END = "end of the stream"
"""No event at all: the bytes end."""
