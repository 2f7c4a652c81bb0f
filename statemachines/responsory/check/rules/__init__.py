"""The rules, by name: what each says, whose streams are held to it, and in which API.

The names are stable: tests, reports and other projects may cite them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from responsory.check.rules import chunks, every_stream, responses
from responsory.check.rules.rule import Rule

RULES: Mapping[str, Rule] = {
    rule.name: rule for rule in (*every_stream.RULES, *responses.RULES, *chunks.RULES)
}
UNREADABLE = frozenset({"sse-stream", "has-events"})
"""Rules whose breach means that there was no stream to check."""


@cache
def kept_by(profile: str) -> Mapping[str, bool]:
    """For every rule, whether the profile holds streams to it."""
    return {rule.name: profile in rule.profiles for rule in RULES.values()}
