"""From an engine's raw text to commands: pure, append-only, and the same for any chunking."""

from __future__ import annotations

from responsory.segments import written
from responsory.segments.formats import FORMATS, PLAIN, Mode, Spec, family
from responsory.segments.holding import answer_written
from responsory.segments.machine import Segmenter
from responsory.segments.pieces import Piece
from responsory.segments.shown import Segment
from responsory.segments.tools import Tool, Tools

__all__ = [
    "FORMATS",
    "PLAIN",
    "Mode",
    "Piece",
    "Segment",
    "Segmenter",
    "Spec",
    "Tool",
    "Tools",
    "answer_written",
    "family",
    "written",
]
