"""From an engine's raw text to commands: pure, append-only, and the same for any chunking."""

from __future__ import annotations

from responsory.segments.formats import PLAIN, Spec
from responsory.segments.machine import Segment, Segmenter
from responsory.segments.pieces import Piece

__all__ = ["PLAIN", "Piece", "Segment", "Segmenter", "Spec"]
