"""What the sampler says about one sequence of a step."""

from __future__ import annotations

import attrs


@attrs.define
class DrawnToken:
    """A drawn id and, where the request asked for it, its raw logprob and the best alternatives."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    """(id, raw logprob), best first, lower ids first among equals."""
