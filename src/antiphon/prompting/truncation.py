"""``truncation: auto``: which items of a history go, oldest first, until the prompt fits.

Whole items go, and what belongs together goes together: a call with its outputs. What stays in any
case are instructions (the request's own and every system or developer message) and the newest user
message, without which there is nothing to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from antiphon.requests.input_items import (
    CustomCallItem,
    CustomCallOutputItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputItem,
    InputMessage,
)

T = TypeVar("T")


def units(items: Sequence[InputItem]) -> list[frozenset[int]]:
    """The indexes of the items that may go, by unit, oldest unit first."""
    newest = max((at for at, item in enumerate(items) if _is_from(item, "user")), default=-1)
    found: list[set[int]] = []
    calls: dict[str, set[int]] = {}
    for at, item in enumerate(items):
        if at == newest or _is_from(item, "system", "developer"):
            continue
        match item:
            case (
                FunctionCallOutputItem(call_id=call_id) | CustomCallOutputItem(call_id=call_id)
            ) if call_id in calls:
                calls[call_id].add(at)
                continue
            case FunctionCallItem(call_id=call_id) | CustomCallItem(call_id=call_id):
                # A later call of the same id is another call; outputs belong to the latest.
                calls[call_id] = unit = {at}
            case _:
                unit = {at}
        found.append(unit)
    return [frozenset(unit) for unit in found]


def without_oldest(
    items: Sequence[InputItem], write: Callable[[Sequence[InputItem]], T | None]
) -> T | None:
    """What ``write`` makes of the items once as few of the oldest units as need be are gone.

    ``write`` gives None for items that do not fit. None if even the fewest do not.
    """
    candidates = units(items)

    def attempt(count: int) -> T | None:
        gone = frozenset[int]().union(*candidates[:count])
        return write([item for at, item in enumerate(items) if at not in gone])

    if (whole := attempt(0)) is not None:
        return whole
    low, high = 0, len(candidates)
    best = attempt(high)
    # Without ``low`` units it does not fit; without ``high`` it does, or nothing does.
    while best is not None and high - low > 1:
        middle = (low + high) // 2
        written = attempt(middle)
        if written is None:
            low = middle
        else:
            high, best = middle, written
    return best


def _is_from(item: InputItem, *roles: str) -> bool:
    return isinstance(item, InputMessage) and item.role in roles
