"""From a request to a sequence: taken, refused, or held until something it needs is there."""

from __future__ import annotations

from antiphon.engines.port import EngineError, EngineInfo, EngineRequest
from antiphon.engines.torch.admission import refusal
from antiphon.engines.torch.sequence import Sequence


class Intake:
    """What the loop asks about every request that comes in, before the scheduler hears of it."""

    def __init__(self, info: EngineInfo) -> None:
        self._info = info
        self._held: dict[int, EngineRequest] = {}
        """Requests that are neither taken nor refused yet."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: int) -> bool:
        return key in self._held

    def keys(self) -> list[int]:
        """Of all that is held, in order of arrival."""
        return list(self._held)

    def take(self, request: EngineRequest) -> Sequence | EngineError | None:
        """The sequence of a request, or why it cannot run; None: it is held."""
        error = refusal(request, self._info)
        if error is not None:
            return error
        return Sequence.of(request, self._info.context_length, self._info.eos_ids)

    def drop(self, key: int) -> bool:
        """Forget a held request, which is aborted; False if none of this key is held."""
        return self._held.pop(key, None) is not None
