"""Changes to the logits of one sequence, before temperature and filters."""

from __future__ import annotations

import torch

from antiphon.engines.torch.sequence import Sequence


def adjusts(sequence: Sequence) -> bool:
    """Whether ``adjust`` would change anything."""
    request = sequence.request
    return (
        request.allowed_ids is not None
        or bool(request.logit_bias)
        or sequence.drawn < request.min_tokens
        or (request.repetition, request.frequency, request.presence) != (1.0, 0.0, 0.0)
    )


def adjust(logits: torch.Tensor, sequence: Sequence) -> torch.Tensor:
    """Float32 [vocab] to a new [vocab]: allowed ids, bias, minimum length, penalties.

    A bias cannot bring back an id that is not allowed.
    """
    request = sequence.request
    device = logits.device
    if request.allowed_ids is None:
        logits = logits.clone()
    else:
        allowed = torch.tensor(request.allowed_ids, device=device)
        only = torch.full_like(logits, -torch.inf)
        only[allowed] = logits[allowed]
        logits = only
    if request.logit_bias:
        ids = torch.tensor(list(request.logit_bias), device=device)
        logits[ids] += torch.tensor(list(request.logit_bias.values()), device=device)
    if sequence.drawn < request.min_tokens:
        logits[torch.tensor(sorted(sequence.stopping_ids), dtype=torch.int64)] = -torch.inf
    _penalise(logits, sequence)
    return logits


def _penalise(logits: torch.Tensor, sequence: Sequence) -> None:
    """Repetition over prompt and output, frequency and presence over the output; in place."""
    request = sequence.request
    if request.repetition != 1.0:
        seen = torch.tensor(sorted(set(sequence.ids)), device=logits.device)
        values = logits[seen]
        logits[seen] = torch.where(
            values > 0, values / request.repetition, values * request.repetition
        )
    if (request.frequency or request.presence) and sequence.drawn:
        output = torch.tensor(sequence.output.tolist(), device=logits.device)
        counts = torch.bincount(output, minlength=len(logits))
        logits -= request.frequency * counts + request.presence * (counts > 0)
