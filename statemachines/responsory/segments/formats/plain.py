"""No markup: every character is the answer."""

from __future__ import annotations

from responsory.commands import Text
from responsory.segments.formats.spec import Mode, Spec

PLAIN = Spec({"answer": Mode(Text)}, "answer")
