"""A checker of streams, of any server: it accepts one, or names the first rule it breaks.

``check_stream`` and ``StreamChecker`` for code, ``python -m responsory.check`` for a terminal. The
checker reads the bytes with nothing of the machine or the projections but the prefixes of ids, so
it can be held against both.
"""

from __future__ import annotations

from responsory.check.checker import StreamChecker, check_stream
from responsory.check.profiles import PROFILES, Profile
from responsory.check.report import Report, Violation
from responsory.check.rules import RULES
from responsory.check.rules.rule import Rule

__all__ = [
    "PROFILES",
    "RULES",
    "Profile",
    "Report",
    "Rule",
    "StreamChecker",
    "Violation",
    "check_stream",
]
