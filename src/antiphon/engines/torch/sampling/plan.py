"""Which rows of a step need what; made anew only when other sequences draw."""

from __future__ import annotations

from collections.abc import Sequence as Rows

import attrs
import numpy as np

from antiphon.engines.torch.sampling.columns import NO_LOGPROBS, Columns
from antiphon.engines.torch.sampling.edits import Edits
from antiphon.engines.torch.sampling.head import Floats, Ints
from antiphon.engines.torch.sampling.philox import Words
from antiphon.engines.torch.sequence import Sequence


@attrs.define(eq=False)
class Plan:
    """Rows, by what is done to them, and the settings of those rows."""

    sequences: list[Sequence]
    slots: list[int]
    edited: list[tuple[int, Edits]]
    penalised: list[int]
    random: Ints
    """Rows that are drawn and not just the likeliest."""
    temperature: Floats
    """Of the random rows, as are the four that follow."""
    min_p: Floats
    top_k: Ints
    top_p: Floats
    seeds: Words
    filtered: bool
    """Whether any of them has a filter."""
    scored: Ints
    """Rows whose logprob is wanted."""
    alternatives: Ints
    """How many of them each scored row wants."""

    @classmethod
    def of(cls, sequences: Rows[Sequence], columns: Columns) -> Plan:
        """Installs those that are not in their slots."""
        for sequence in sequences:
            columns.install(sequence)
        slots = [sequence.slot for sequence in sequences]
        at = np.array(slots, dtype=np.int64)
        edits = [(row, columns.edits[slot]) for row, slot in enumerate(slots)]
        neutral = (columns.repetition[at] == 1) & (columns.frequency[at] == 0)
        random = np.flatnonzero(columns.temperature[at] > 0)
        drawn = at[random]
        min_p, top_k, top_p = columns.min_p[drawn], columns.top_k[drawn], columns.top_p[drawn]
        scored = np.flatnonzero(columns.logprobs[at] != NO_LOGPROBS)
        return cls(
            sequences=list(sequences),
            slots=slots,
            edited=[(row, edit) for row, edit in edits if edit is not None],
            penalised=np.flatnonzero(~(neutral & (columns.presence[at] == 0))).tolist(),
            random=random,
            temperature=columns.temperature[drawn],
            min_p=min_p,
            top_k=top_k,
            top_p=top_p,
            seeds=columns.seed[drawn],
            filtered=bool((min_p > 0).any() or (top_k > 0).any() or (top_p < 1).any()),
            scored=scored,
            alternatives=columns.logprobs[at[scored]],
        )

    def is_of(self, sequences: Rows[Sequence]) -> bool:
        """Whether these are the sequences, each in the slot it had."""
        return self.sequences == sequences and self.slots == [one.slot for one in sequences]
