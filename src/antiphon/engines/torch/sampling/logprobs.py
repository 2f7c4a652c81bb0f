"""Log probabilities under the model itself: before any bias, penalty, temperature or filter."""

from __future__ import annotations

import numpy as np

from antiphon.engines.port import PAD_ID
from antiphon.engines.torch.sampling.head import LOWEST, Floats, Ints, best_ids, weight_of


def token_logprobs(logits: Floats, tokens: Ints, top: int) -> tuple[Floats, Ints, Floats]:
    """Logits [rows, vocab] and tokens [rows] to the tokens' logprobs and their alternatives.

    [rows], finite however small, then ids and logprobs of the ``top`` best, both [rows, top], the
    lower id first among equals; ``PAD_ID`` and minus infinity where fewer tokens are possible.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # far apart, or no numbers and refused
        best = logits.max(-1)
        total = best + np.log(weight_of(logits, best))
        logprobs = logits[np.arange(len(logits)), tokens] - total
        ids, values = best_ids(logits, top)
        alternatives = np.where(ids == PAD_ID, values, np.maximum(values - total[:, None], LOWEST))
    return np.maximum(logprobs, LOWEST), ids, alternatives
