"""Obfuscation: random text beside a delta, so that the size of an encrypted payload does not tell
the text.

Who sees only sizes sees multiples of ``BUCKET``, whatever the tokens are: the attack is that of
Weiss et al., "What Was Your Prompt? A Remote Keylogging Attack on AI Assistants" (USENIX Security
2024).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from responsory.projections.text import quote

Draw: TypeAlias = Callable[[int], str]
"""Gives as many random characters, each one byte that JSON does not escape."""

BUCKET = 32
"""Bytes. Most tokens fit into one."""


def padding(varying: str, draw: Draw) -> str:
    """The key ``obfuscation``, which goes last: with it ``varying``, all of the payload that is not
    the same on each delta, fills whole buckets. There is always at least one character."""
    return f',"obfuscation":{quote(draw(BUCKET - len(varying.encode()) % BUCKET))}'
