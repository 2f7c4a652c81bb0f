"""Scores the prompt tokens that a step has read, while their states are at hand."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Rows

import numpy as np
import torch

from antiphon.engines.torch.sampling.head import Floats
from antiphon.engines.torch.sampling.logprobs import token_logprobs
from antiphon.engines.torch.step import Chunk

ROWS = 64
"""Logits held at a time: 39 MB for a vocabulary of 152k tokens, however long the prompt is."""


def score_prompts(
    chunks: Rows[Chunk], states: torch.Tensor, logits_of: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Add to the scores of every sequence that collects them what its chunk tells.

    ``states`` are [N, hidden], row after row as the chunks hold them; ``logits_of`` turns states
    into float32 [rows, vocab]. The state of a position predicts the token after it.
    """
    first = 0
    for chunk in chunks:
        scores, ids = chunk.sequence.scores, chunk.sequence.ids
        if scores is not None and (span := chunk.scored):
            begin = first + span.start - chunk.start
            for piece in torch.split(states[begin : begin + len(span)], ROWS):
                after = scores.done + 1
                logits: Floats = logits_of(piece).numpy(force=True)
                targets = np.array(ids[after : after + len(piece)], dtype=np.int64)
                scores.add(*token_logprobs(logits, targets, scores.top_n))
        first += chunk.count
