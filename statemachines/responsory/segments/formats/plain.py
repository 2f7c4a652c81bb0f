"""No markup: every character is the answer."""

from __future__ import annotations

from responsory.segments.formats.spec import Spec

PLAIN = Spec("plain")
