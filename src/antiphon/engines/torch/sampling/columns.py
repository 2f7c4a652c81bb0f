"""What the sampler keeps of the sequences that run: columns over their slots."""

from __future__ import annotations

import numpy as np

from antiphon.engines.torch.sampling.edits import Edits
from antiphon.engines.torch.sampling.head import LOWEST, Floats
from antiphon.engines.torch.sampling.penalties import Counts
from antiphon.engines.torch.sequence import Sequence

GREEDY_BELOW = 1e-5
"""Temperatures below this take the likeliest token, the lowest id among equals."""
NO_LOGPROBS = -1


class Columns:
    """One entry for each slot; a sequence's are written when its slot last held another's."""

    def __init__(self, slots: int, vocab_size: int) -> None:
        """Counts of tokens are kept only once a sequence asks for a penalty."""
        self.owner: list[Sequence | None] = [None] * slots
        self.edits: list[Edits | None] = [None] * slots
        self.counts = Counts(slots, vocab_size)
        self.temperature = np.zeros(slots, dtype=np.float32)
        """0 where the row is greedy."""
        self.min_p = np.zeros(slots, dtype=np.float32)
        self.top_k = np.zeros(slots, dtype=np.int64)
        self.top_p = np.ones(slots, dtype=np.float32)
        self.seed = np.zeros(slots, dtype=np.uint64)
        self.repetition = np.ones(slots, dtype=np.float64)
        """Next to 0 it may be too small for float32."""
        self.frequency = np.zeros(slots, dtype=np.float32)
        self.presence = np.zeros(slots, dtype=np.float32)
        self.logprobs = np.full(slots, NO_LOGPROBS)

    def penalise(self, logits: Floats, sequence: Sequence) -> None:
        """Change the sequence's row [vocab] in place for what it has said so far."""
        slot = sequence.slot
        self.counts.count(sequence)
        self.counts.penalise(
            logits, slot, self.repetition[slot], self.frequency[slot], self.presence[slot]
        )

    def install(self, sequence: Sequence) -> None:
        """Write the sequence's entries unless they are there."""
        slot, request = sequence.slot, sequence.request
        if self.owner[slot] is sequence:
            return
        self.owner[slot] = sequence
        self.edits[slot] = Edits.of(sequence)
        greedy = request.temperature < GREEDY_BELOW
        self.temperature[slot] = 0 if greedy else min(request.temperature, -float(LOWEST))
        self.min_p[slot] = request.min_p
        self.top_k[slot] = request.top_k
        self.top_p[slot] = request.top_p
        self.seed[slot] = request.seed
        self.repetition[slot] = request.repetition
        self.frequency[slot] = request.frequency
        self.presence[slot] = request.presence
        self.logprobs[slot] = NO_LOGPROBS if request.logprobs is None else request.logprobs
        self.counts.forget(slot)
