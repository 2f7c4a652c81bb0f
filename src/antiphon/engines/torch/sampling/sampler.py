"""Draws one token for each row of logits.

Order: raw logprobs; grammar masks, allowed ids, bias, minimum length; penalties; greedy rows take
the likeliest; the others are divided by their temperature, filtered (min-p, top-k, top-p) and drawn
by adding Gumbel noise and taking the greatest. Every row is handled by itself: its draw depends on
its logits, its history, its seed and its position only.

All of it is numpy's, on the host. Of one row of a vocabulary of 49,152 numpy finds the greatest in
2 µs and torch in 27, and as much is true of the other passes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from antiphon.engines.port import PAD_ID, EngineError
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.sampling.columns import Columns
from antiphon.engines.torch.sampling.draw import draw
from antiphon.engines.torch.sampling.edits import apply_masks
from antiphon.engines.torch.sampling.filters import least_kept
from antiphon.engines.torch.sampling.head import LOWEST, Floats, Ints
from antiphon.engines.torch.sampling.logprobs import token_logprobs
from antiphon.engines.torch.sampling.plan import Plan
from antiphon.engines.torch.sequence import Sequence

FAR = 1e30
"""Logits whose greatest is further from zero, once it is divided by the temperature, are taken
relative to it first. Up to here no sum of the filters or of the draw leaves float32."""

NOT_NUMBERS = EngineError(
    code="engine_failed", message="the model's logits for the next token are no finite numbers"
)


class Sampler:
    """Draws the tokens of every step. It finds out by itself which sequence holds which slot."""

    def __init__(self, slots: int, vocab_size: int, device: torch.device) -> None:
        """``slots``: sequences that run at a time; ``device``: where the logits are."""
        self._columns = Columns(slots, vocab_size)
        self._plan = Plan.of([], self._columns)
        self._shape = (slots, vocab_size)
        self._rows: Floats | None = None
        self._landing: torch.Tensor | None = None
        """Where the logits of another device are copied to."""
        if device.type != "cpu":
            self._landing = torch.empty((slots, vocab_size), pin_memory=True)

    def sample(
        self, raw: torch.Tensor, sequences: list[Sequence], masks: torch.Tensor | None = None
    ) -> Drawn:
        """A token for each sequence from its row of ``raw``: float32 [rows, vocab], left as it is.

        ``masks`` is int32 [rows, ceil(vocab / 32)]: bit ``i % 32`` of word ``i // 32`` is set where
        token i may be drawn. None: all may, in every row. A row of which nothing may be drawn, or
        whose logits are not finite at their greatest, is refused.
        """
        if not self._plan.is_of(sequences):
            self._plan = Plan.of(sequences, self._columns)
        plan, given = self._plan, self._on_host(raw)
        logits = self._changed(given, None if masks is None else masks.numpy(force=True))
        tokens = logits.argmax(-1)
        best = logits[np.arange(len(logits)), tokens]
        refused = dict[int, EngineError]()
        peaks = best if logits is given else given.max(-1)
        if not (np.isfinite(best).all() and np.isfinite(peaks).all()):
            refused = self._refusals(best, peaks)
        if plan.random.size:
            self._draw(logits, best, tokens, refused)
        drawn = Drawn(tokens.tolist(), refused=refused)
        if plan.scored.size:
            self._score(drawn, given, tokens)
        for row in refused:
            drawn.token[row] = PAD_ID
        return drawn

    def _scratch(self) -> Floats:
        """Float32 [slots, vocab], the same every time: fresh memory costs more than its use."""
        if self._rows is None:
            self._rows = np.empty(self._shape, dtype=np.float32)
        return self._rows

    def _on_host(self, raw: torch.Tensor) -> Floats:
        """The rows as numpy sees them: the same memory if they are there already."""
        if self._landing is None:
            rows: Floats = raw.numpy(force=True)
            return rows
        landed: Floats = self._landing[: len(raw)].copy_(raw).numpy()
        return landed

    def _changed(self, given: Floats, masks: NDArray[np.int32] | None) -> Floats:
        """The logits behind masks, edits and penalties: new ones if any row has some."""
        plan = self._plan
        masked = np.empty(0, dtype=np.int64)
        if masks is not None:
            masked = np.flatnonzero((masks != -1).any(-1))
        if not (masked.size or plan.edited or plan.penalised):
            return given
        logits = self._scratch()[: len(given)]
        logits[...] = given
        if masked.size and masks is not None:
            apply_masks(logits, masks, masked)
        for row, edits in plan.edited:
            edits.apply(logits[row], len(plan.sequences[row].ids))
        with np.errstate(over="ignore"):
            for row in plan.penalised:
                self._columns.penalise(logits[row], plan.sequences[row])
        return logits

    def _refusals(self, best: Floats, peaks: Floats) -> dict[int, EngineError]:
        """Of every row whose greatest logit, or greatest raw logit, is not finite."""
        refused = dict[int, EngineError]()
        for row in np.flatnonzero(~(np.isfinite(best) & np.isfinite(peaks))).tolist():
            nothing = best[row] == -np.inf and np.isfinite(peaks[row])
            refused[row] = _nothing_left(self._plan.sequences[row]) if nothing else NOT_NUMBERS
        return refused

    def _draw(
        self, logits: Floats, best: Floats, tokens: Ints, refused: dict[int, EngineError]
    ) -> None:
        """Put the tokens of the rows that are drawn into ``tokens``."""
        plan = self._plan
        some = np.arange(len(plan.random))
        if refused:
            some = np.flatnonzero(~np.isin(plan.random, list(refused)))
            if not some.size:
                return
        rows, temperature = plan.random[some], plan.temperature[some]
        heated = self._scratch()[: len(rows)]
        with np.errstate(over="ignore"):  # what falls out of float32 is too far below to be drawn
            peak = best[rows] / temperature
            far = np.abs(peak) > FAR
            for to, row in enumerate(rows):  # never over a row that comes later
                values = logits[row] - best[row] if far[to] else logits[row]
                np.divide(values, temperature[to], out=heated[to])
        peak[far] = 0
        least = np.full(len(rows), LOWEST)
        if plan.filtered:
            least = least_kept(heated, peak, plan.min_p[some], plan.top_k[some], plan.top_p[some])
        at = np.array([len(plan.sequences[row].ids) for row in rows.tolist()], dtype=np.uint64)
        tokens[rows] = draw(heated, peak, least, plan.seeds[some], at)

    def _score(self, drawn: Drawn, given: Floats, tokens: Ints) -> None:
        """Add the raw logprobs of the rows that want them."""
        plan = self._plan
        drawn.top_n = most = int(plan.alternatives.max())
        if len(plan.scored) < len(given):
            given, tokens = given[plan.scored], tokens[plan.scored]
        logprobs, ids, values = token_logprobs(given, tokens, most)
        surplus = np.arange(most) >= plan.alternatives[:, None]
        rows = len(drawn.token)
        column = np.full(rows, np.nan, dtype=np.float32)
        top_id = np.full((rows, most), PAD_ID)
        top_lp = np.full((rows, most), -np.inf, dtype=np.float32)
        column[plan.scored] = logprobs
        top_id[plan.scored] = np.where(surplus, PAD_ID, ids)
        top_lp[plan.scored] = np.where(surplus, -np.inf, values)
        drawn.logprob = column.tolist()
        drawn.top_id, drawn.top_lp = top_id.ravel().tolist(), top_lp.ravel().tolist()


def _nothing_left(sequence: Sequence) -> EngineError:
    """Grammar, allowed ids and minimum length exclude each other."""
    asked = ["the allowed token ids"] if sequence.request.allowed_ids is not None else []
    asked += ["min_tokens"] if sequence.request.min_tokens else []
    if sequence.request.grammar is None:
        return EngineError(
            code="unsupported",
            message=f"no token is left to draw: {' and '.join(asked)} exclude them all",
        )
    return EngineError(
        code="grammar_invalid",
        message=f"no token is left to draw: {' and '.join(['the grammar', *asked])} exclude them "
        "all",
    )
