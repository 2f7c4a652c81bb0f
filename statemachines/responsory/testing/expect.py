"""The failure of a check, raised like any error: ``python -O`` does not take it away."""

from __future__ import annotations


class InvariantError(AssertionError):
    """A rule of logs or streams is broken; the message is the rule. An AssertionError, so that test
    runners report a failed test and not a faulty one."""


def expect(holds: bool, rule: str) -> None:
    """Raises InvariantError with ``rule`` unless it ``holds``."""
    if not holds:
        raise InvariantError(rule)
