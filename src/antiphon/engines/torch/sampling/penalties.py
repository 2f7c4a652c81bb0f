"""Penalties for what was said before: repetition, frequency, presence."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from antiphon.engines.torch.sampling.head import LOWEST, Floats
from antiphon.engines.torch.sequence import Sequence


class Counts:
    """How often each token stands in the output of each slot, and which stand there or before."""

    def __init__(self, slots: int, vocab_size: int) -> None:
        """Takes no memory before the first ``count``; 4 bytes a slot and token then."""
        self._shape = (slots, vocab_size)
        self._output: NDArray[np.int32] | None = None
        """[slots, vocab]: times in the output; -1: neither there nor in the prompt."""
        self._said = [array("q") for _ in range(slots)]
        """The tokens of prompt and output, each once."""
        self._counted = [0] * slots
        """Leading ids of the sequence that were counted; 0: the slot has had another's."""

    def forget(self, slot: int) -> None:
        """The slot has another sequence from now on."""
        self._counted[slot] = 0

    def count(self, sequence: Sequence) -> None:
        """Add what the sequence has drawn since the last time, or all of it if it is new here."""
        if self._output is None:
            self._output = np.empty(self._shape, dtype=np.int32)
        slot, ids = sequence.slot, sequence.ids
        times = self._output[slot]
        if self._counted[slot] == 0:
            prompt = np.unique(ids[: len(sequence.request.prompt)]).astype(np.int64)
            times.fill(-1)
            times[prompt] = 0
            self._said[slot] = array("q", prompt.tobytes())
            self._counted[slot] = len(sequence.request.prompt)
        for token in ids[self._counted[slot] :]:
            if times[token] < 0:
                times[token] = 0
                self._said[slot].append(token)
            times[token] += 1
        self._counted[slot] = len(ids)

    def penalise(
        self, logits: Floats, slot: int, repetition: float, frequency: float, presence: float
    ) -> None:
        """Change a row [vocab] in place for what the sequence in the slot has said.

        Repetition divides what is above zero and multiplies what is below, for every token of
        prompt or output; then frequency is taken off for each time a token stands in the output,
        and presence if it does (the definitions of CTRL, Keskar et al. 2019, and of the OpenAI
        API). What would leave float32 stays at its end, and what may not be drawn as it is.
        """
        assert self._output is not None  # noqa: S101  # it was counted before
        said = np.array(self._said[slot])
        times = self._output[slot, said].astype(np.float32)
        given = logits[said]
        wide = given.astype(np.float64)
        value = np.where(given > 0, wide / repetition, wide * repetition)
        value -= np.float32(frequency) * times + np.float32(presence) * (times > 0)
        logits[said] = np.where(given >= LOWEST, value.clip(LOWEST, -LOWEST), given)
