"""The logprobs of one prompt while they are being collected (pure Python, no torch)."""

from __future__ import annotations

from array import array

import attrs
import numpy as np
from numpy.typing import NDArray

from antiphon.engines.port import PromptLogprobs


@attrs.define(eq=False)
class PromptScores:
    """Grows by one prompt token after the other, from the second on.

    It belongs to the sequence and not to its pages, so what was scored before a preemption is kept
    and not scored again when the prompt is read once more.
    """

    top_n: int
    """Alternatives of each token, ``PAD_ID`` where the vocabulary has fewer."""
    _logprob: array[float] = attrs.field(factory=lambda: array("f"), init=False)
    _top_id: array[int] = attrs.field(factory=lambda: array("I"), init=False)
    _top_lp: array[float] = attrs.field(factory=lambda: array("f"), init=False)

    @property
    def done(self) -> int:
        """Tokens scored so far; the next one to score is predicted at this position."""
        return len(self._logprob)

    def add(
        self,
        logprobs: NDArray[np.float32],
        top_ids: NDArray[np.int64],
        top_lps: NDArray[np.float32],
    ) -> None:
        """Append T tokens: their logprobs [T], and alternatives [T, top_n], the best first."""
        self._logprob.frombytes(logprobs.tobytes())
        self._top_id.frombytes(top_ids.astype(np.uint32).tobytes())
        self._top_lp.frombytes(top_lps.tobytes())

    def block(self) -> PromptLogprobs:
        """All of it, as a frame carries it."""
        return PromptLogprobs(
            logprob=self._logprob, top_n=self.top_n, top_id=self._top_id, top_lp=self._top_lp
        )
