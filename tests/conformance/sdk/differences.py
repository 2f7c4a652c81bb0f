"""What an SDK made of a stream, compared with the golden body."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any


def differences(
    made: Any,
    golden: Any,
    *,
    added: Set[str] = frozenset(),
    lost: Set[str] = frozenset(),
    at: str = "",
) -> Iterator[str]:
    """Where the two differ, by path. The keys in ``added`` are the SDK's own and those in ``lost``
    it does not carry over; a key that holds null on one side may be absent on the other, and of
    null and "" it may pick either."""
    if isinstance(made, dict) and isinstance(golden, dict):
        for key in sorted(made.keys() | golden.keys()):
            one, other = made.get(key), golden.get(key)
            if (key in added and key not in golden) or (key in lost and key not in made):
                continue
            yield from differences(one, other, added=added, lost=lost, at=f"{at}.{key}")
    elif isinstance(made, list) and isinstance(golden, list) and len(made) == len(golden):
        for index, (one, other) in enumerate(zip(made, golden, strict=True)):
            yield from differences(one, other, added=added, lost=lost, at=f"{at}[{index}]")
    elif made != golden and not (made in (None, "") and golden in (None, "")):
        yield f"{at}: {made!r} instead of {golden!r}"
