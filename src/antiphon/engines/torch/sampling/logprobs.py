"""Log probabilities under the model itself: before any bias, penalty, temperature or filter."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from antiphon.engines.port import PAD_ID
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


def token_logprobs(
    logits: torch.Tensor, tokens: torch.Tensor, top: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Float32 [rows, vocab] and int64 [rows] to the tokens' logprobs and their alternatives.

    [rows], then ids (int64) and logprobs of the ``top`` best, both [rows, top], padded with
    ``PAD_ID`` and minus infinity where the vocabulary has fewer.
    """
    total = logits.logsumexp(-1, keepdim=True)
    logprobs = (logits.gather(-1, tokens[:, None]) - total).squeeze(-1)
    best = _best_ids_of_rows(logits, min(top, logits.shape[-1]))
    lacking = (0, top - best.shape[-1])
    values = logits.gather(-1, best) - total
    return logprobs, F.pad(best, lacking, value=PAD_ID), F.pad(values, lacking, value=-torch.inf)


def best_ids(logits: torch.Tensor, count: int) -> torch.Tensor:
    """The ``count`` likeliest ids, best first, the lower id first among equals."""
    if count == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    threshold = logits.topk(min(count, len(logits))).values[-1]
    # Ascending ids, so a stable sort leaves equals in that order; topk promises no order there.
    candidates = (logits >= threshold).nonzero().flatten()
    order = logits[candidates].sort(descending=True, stable=True).indices
    return candidates[order[:count]]


def _best_ids_of_rows(logits: torch.Tensor, count: int) -> torch.Tensor:
    """``best_ids`` of every row: int64 [rows, count]."""
    if count == 0:
        return torch.empty((len(logits), 0), dtype=torch.int64, device=logits.device)
    best = logits.topk(count)
    ids = best.indices.sort(-1).values
    order = logits.gather(-1, ids).sort(dim=-1, descending=True, stable=True).indices
    ids = ids.gather(-1, order)
    # Where more tokens tie with the last one than fit, topk took any of them.
    tied = (logits >= best.values[:, -1:]).sum(-1) > count
    for row in tied.nonzero().flatten().tolist():
        ids[row] = best_ids(logits[row], count)
    return ids
