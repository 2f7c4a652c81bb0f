"""The masks of a step, filled by a thread of their own beside the forward pass."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray

from antiphon.engines.torch.grammar.state import Grammar
from antiphon.engines.torch.sequence import Sequence


class PendingMasks:
    """Masks that are being filled."""

    def __init__(self, filled: Future[NDArray[np.int32]] | None) -> None:
        self._filled = filled

    def wait(self) -> torch.Tensor | None:
        """int32 [R, ceil(V / 32)] in the order of the rows, those without a form all ones.

        None: no row has one. Bit i%32 of word i//32 is set if token i may be drawn.
        """
        return None if self._filled is None else torch.from_numpy(self._filled.result())


NO_MASKS = PendingMasks(None)


class Masks:
    """Fills masks for a vocabulary of ``vocab_size`` tokens."""

    def __init__(self, vocab_size: int) -> None:
        self._words = (vocab_size + 31) // 32
        # One thread: a mask takes microseconds, and the operators want the cores.
        self._filler = ThreadPoolExecutor(1, "masks")

    def begin(self, sequences: Rows[Sequence]) -> PendingMasks:
        """Begin with the masks of these rows; their grammars must not advance until ``wait``."""
        held = [
            (row, sequence.grammar)
            for row, sequence in enumerate(sequences)
            if isinstance(sequence.grammar, Grammar)
        ]
        if not held:
            return NO_MASKS
        return PendingMasks(self._filler.submit(self._fill, len(sequences), held))

    def _fill(self, rows: int, held: list[tuple[int, Grammar]]) -> NDArray[np.int32]:
        masks = np.full((rows, self._words), -1, dtype=np.int32)
        for row, grammar in held:
            grammar.fill(masks[row])
        return masks
