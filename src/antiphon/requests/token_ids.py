"""Lists of token ids, checked as a whole: a prompt may hold tens of thousands of them."""

from __future__ import annotations

from array import array
from typing import Any

import attrs
import numpy as np

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between
from antiphon.requests.faults import at, invalid_type

IDS = Between(0, 2**32 - 1)


@attrs.frozen
class TokenIds:
    """A list of integers in ``[0, 2**32)``; whether the model knows them is told later."""

    def check(self, value: list[Any]) -> None:
        if _all_ids(value):
            return
        for index, token in enumerate(value):
            try:
                if type(token) is not int:
                    raise invalid_type(token, int)
                IDS.check(token)
            except InvalidRequest as error:
                raise InvalidRequest(error.message, code=error.code, param=f"[{index}]") from None


def _all_ids(value: list[Any]) -> bool:
    """Without a line of Python per id: 32 bits take numbers, and ``true`` and ``false``."""
    if not value:
        return True
    try:
        words = array("I", value)
    except (TypeError, OverflowError):
        return False
    suspects = np.flatnonzero(np.frombuffer(words, dtype=np.uintc) <= 1)
    return all(type(value[index]) is int for index in suspects)


def check_token_ids(ids: list[Any], path: str) -> None:
    """The same for the list at ``path``. Raises ``InvalidRequest`` naming the first wrong one."""
    try:
        TokenIds().check(ids)
    except InvalidRequest as error:
        raise at(path, error) from None
