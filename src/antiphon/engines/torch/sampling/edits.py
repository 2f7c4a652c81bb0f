"""What a request forbids or favours by token id, before any penalty."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from antiphon.engines.torch.sampling.head import Floats, Ints
from antiphon.engines.torch.sequence import Sequence


@attrs.define(eq=False)
class Edits:
    """Allowed ids, bias and the ids that may not end the output yet."""

    allowed: Ints | None
    biased: Ints
    bias: Floats
    stopping: Ints
    free_at: int
    """The length of prompt and output from which on the stopping ids may be drawn."""

    @classmethod
    def of(cls, sequence: Sequence) -> Edits | None:
        """None if the request changes nothing by id."""
        request = sequence.request
        if request.allowed_ids is None and not request.logit_bias and request.min_tokens == 0:
            return None
        allowed = request.allowed_ids
        return cls(
            allowed=None if allowed is None else np.array(allowed, dtype=np.int64),
            biased=np.array(list(request.logit_bias), dtype=np.int64),
            bias=np.array(list(request.logit_bias.values()), dtype=np.float32),
            stopping=np.array(sorted(sequence.stopping_ids), dtype=np.int64),
            free_at=len(request.prompt) + request.min_tokens,
        )

    def apply(self, logits: Floats, length: int) -> None:
        """Change a row [vocab] in place; ``length`` is that of prompt and output.

        A bias cannot bring back an id that is masked or not allowed.
        """
        if self.allowed is not None:
            kept = logits[self.allowed]
            logits.fill(-np.inf)
            logits[self.allowed] = kept
        logits[self.biased] += self.bias
        if length < self.free_at:
            logits[self.stopping] = -np.inf


def apply_masks(logits: Floats, masks: NDArray[np.int32], rows: Ints) -> None:
    """Mask, in place, what the bits of these rows of ``masks`` [R, words] leave out."""
    bits = np.unpackbits(
        masks[rows].astype("<i4", copy=False).view(np.uint8),
        axis=1, count=logits.shape[1], bitorder="little",
    )  # fmt: skip
    for row, allowed in zip(rows.tolist(), bits, strict=True):
        logits[row, allowed == 0] = -np.inf
