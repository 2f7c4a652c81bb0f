"""One data spec per model family: how its raw text marks what it is."""

from __future__ import annotations

from responsory.segments.formats.plain import PLAIN
from responsory.segments.formats.spec import Spec

__all__ = ["PLAIN", "Spec"]
