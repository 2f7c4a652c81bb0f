"""Log probabilities under the model itself: before any bias, penalty, temperature or filter."""

from __future__ import annotations

import torch

from antiphon.engines.torch.drawn import DrawnToken


def with_logprobs(logits: torch.Tensor, token: int, top: int) -> DrawnToken:
    """The token with its logprob and the ``top`` best alternatives; logits are float32 [vocab]."""
    total = logits.logsumexp(-1)
    best = best_ids(logits, top)
    values = (logits[best] - total).tolist()
    return DrawnToken(
        token,
        float(logits[token] - total),
        tuple(zip(best.tolist(), values, strict=True)),
    )


def best_ids(logits: torch.Tensor, count: int) -> torch.Tensor:
    """The ``count`` likeliest ids, best first, the lower id first among equals."""
    if count == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    threshold = logits.topk(min(count, len(logits))).values[-1]
    # Ascending ids, so a stable sort leaves equals in that order; topk promises no order there.
    candidates = (logits >= threshold).nonzero().flatten()
    order = logits[candidates].sort(descending=True, stable=True).indices
    return candidates[order[:count]]
