"""Lists of token ids, checked as a whole: a prompt may hold tens of thousands of them."""

from __future__ import annotations

from typing import Any

import attrs

from antiphon.errors import InvalidRequest
from antiphon.requests.constraints import Between

HIGHEST = 2**32 - 1
_RANGE = Between(0, HIGHEST)


@attrs.frozen
class TokenIds:
    """A list of integers in ``[0, 2**32)``; whether the model knows them is told later."""

    def check(self, value: list[Any]) -> None:
        # Three passes without a line of Python each; which one is wrong matters only if one is.
        if not value:
            return
        if set(map(type, value)) == {int} and min(value) >= 0 and max(value) <= HIGHEST:
            return
        for index, token in enumerate(value):
            if type(token) is not int:
                raise InvalidRequest("Expected token ids.", code="invalid_type", param=f"[{index}]")
            try:
                _RANGE.check(token)
            except InvalidRequest as error:
                raise InvalidRequest(error.message, code=error.code, param=f"[{index}]") from None


def check_token_ids(ids: list[Any], path: str) -> None:
    """The same for the list at ``path``. Raises ``InvalidRequest`` naming the first wrong one."""
    try:
        TokenIds().check(ids)
    except InvalidRequest as error:
        place = f"{path}{error.param}"
        raise InvalidRequest(
            f"Invalid `{place}`: {error.message}", code=error.code, param=place
        ) from None
