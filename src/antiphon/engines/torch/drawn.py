"""What the sampler says about the sequences of a step: columns, and no object for a token."""

from __future__ import annotations

import attrs

from antiphon.engines.port import EngineError


@attrs.define(eq=False)
class Drawn:
    """R rows, one for each sequence that drew, in the order in which they were given."""

    token: list[int]
    """[R]; ``PAD_ID`` in a refused row."""
    logprob: list[float] | None = None
    """[R]: raw logprob of the token, NaN where its request asked for none; None: no row asked."""
    top_n: int = 0
    """Alternatives of a row: as many as the row that asked for most."""
    top_id: list[int] = attrs.field(factory=list)
    """[R * top_n]: row after row, best first, lower ids first among equals; ``PAD_ID`` where a row
    asked for fewer or the vocabulary has no more."""
    top_lp: list[float] = attrs.field(factory=list)
    """[R * top_n]: their raw logprobs, minus infinity where there is none."""
    refused: dict[int, EngineError] = attrs.field(factory=dict)
    """Row -> why nothing could be drawn: its sequence ends with this error."""
