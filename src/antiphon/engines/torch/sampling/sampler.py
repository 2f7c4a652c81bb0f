"""Draws one token for each row of logits.

Order: raw logprobs; allowed ids, bias, minimum length, penalties; greedy rows take the likeliest;
the others are divided by their temperature, filtered (min-p, top-k, top-p) and drawn by adding
Gumbel noise and taking the maximum. Every row is handled by itself: its draw depends on its logits,
seed and position only.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Rows

import torch

from antiphon.engines.port import PAD_ID, EngineRequest
from antiphon.engines.torch.drawn import Drawn, DrawnToken
from antiphon.engines.torch.sampling.adjust import adjust, adjusts
from antiphon.engines.torch.sampling.filters import min_p, top_k, top_p
from antiphon.engines.torch.sampling.logprobs import with_logprobs
from antiphon.engines.torch.sampling.philox import gumbel
from antiphon.engines.torch.sequence import Sequence

GREEDY_BELOW = 1e-5
"""Temperatures below this take the likeliest token, the lowest id among equals."""


def sample(raw: torch.Tensor, sequences: Rows[Sequence]) -> list[DrawnToken]:
    """One token for each sequence from its row of ``raw``: float32 [rows, vocab]."""
    logits = raw
    changed = [row for row, sequence in enumerate(sequences) if adjusts(sequence)]
    if changed:
        logits = raw.clone()
        for row in changed:
            logits[row] = adjust(raw[row], sequences[row])
    tokens = logits.argmax(-1)
    random = [row for row, one in enumerate(sequences) if one.request.temperature >= GREEDY_BELOW]
    if random:
        tokens[random] = _draw(logits[random], [sequences[row] for row in random])
    drawn = []
    for row, (token, sequence) in enumerate(zip(tokens.tolist(), sequences, strict=True)):
        top = sequence.request.logprobs
        drawn.append(DrawnToken(token) if top is None else with_logprobs(raw[row], token, top))
    return drawn


def _draw(logits: torch.Tensor, sequences: Rows[Sequence]) -> torch.Tensor:
    """Int64 [rows] from float32 [rows, vocab], which is overwritten."""
    requests = [sequence.request for sequence in sequences]
    logits /= _column(requests, lambda one: one.temperature, logits)[:, None]
    _filter(logits, requests, min_p, lambda one: one.min_p, lambda value: value > 0)
    _filter(logits, requests, top_k, lambda one: one.top_k, lambda value: value > 0)
    _filter(logits, requests, top_p, lambda one: one.top_p, lambda value: value < 1)
    noise = gumbel(
        [request.seed for request in requests],
        [len(sequence.ids) for sequence in sequences],
        logits.shape[-1],
        logits.device,
    )
    return (logits + noise).argmax(-1)


def _filter(
    logits: torch.Tensor,
    requests: Rows[EngineRequest],
    keep: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    setting: Callable[[EngineRequest], float],
    is_on: Callable[[float], bool],
) -> None:
    """Apply one filter, in place, to the rows that ask for it."""
    rows = [row for row, request in enumerate(requests) if is_on(setting(request))]
    if rows:
        values = _column([requests[row] for row in rows], setting, logits)
        logits[rows] = keep(logits[rows], values)


def _column(
    requests: Rows[EngineRequest], setting: Callable[[EngineRequest], float], like: torch.Tensor
) -> torch.Tensor:
    """The setting of every request, as the numbers they are: [rows]."""
    return torch.tensor([setting(request) for request in requests], device=like.device)


class Sampler:
    """Draws the tokens of every step."""

    def __init__(self, slots: int, vocab_size: int, device: torch.device) -> None:
        """``slots``: sequences that run at a time."""
        self.slots = slots
        self.vocab_size = vocab_size
        self.device = device

    def sample(
        self, raw: torch.Tensor, sequences: Rows[Sequence], masks: torch.Tensor | None = None
    ) -> Drawn:
        """A token for each sequence from its row of ``raw``: float32 [rows, vocab].

        ``masks`` is int32 [rows, ceil(vocab / 32)]: bit ``i % 32`` of word ``i // 32`` is set where
        token i may be drawn. None: all may, in every row.
        """
        allowed = raw
        if masks is not None:
            bits = torch.arange(32, dtype=torch.int32, device=raw.device)
            open_ids = (masks[:, :, None] >> bits & 1).flatten(1)[:, : raw.shape[-1]].bool()
            allowed = raw.masked_fill(~open_ids, -torch.inf)
        tokens = [one.token for one in sample(allowed, sequences)]
        wanted = [sequence.request.logprobs for sequence in sequences]
        if all(count is None for count in wanted):
            return Drawn(tokens)
        top_n = max(count or 0 for count in wanted)
        drawn = Drawn(tokens, logprob=[], top_n=top_n)
        assert drawn.logprob is not None  # noqa: S101  # set in the line before
        for row, count in enumerate(wanted):
            top: tuple[tuple[int, float], ...] = ()
            logprob: float | None = None
            if count is not None:
                one = with_logprobs(raw[row], tokens[row], count)
                logprob, top = one.logprob, one.top
            lacking = top_n - len(top)
            drawn.logprob.append(torch.nan if logprob is None else logprob)
            drawn.top_id += [token for token, _ in top] + [PAD_ID] * lacking
            drawn.top_lp += [value for _, value in top] + [-torch.inf] * lacking
        return drawn
