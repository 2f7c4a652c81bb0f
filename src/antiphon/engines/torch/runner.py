"""One step on the device: chunks in, drawn tokens out."""

from __future__ import annotations

from typing import Protocol

import attrs
import torch

from antiphon.engines.port import EngineError
from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.drawn import Drawn
from antiphon.engines.torch.models.decoder import Decoder
from antiphon.engines.torch.models.kv_cache import KVCache
from antiphon.engines.torch.sampling.prompt_scorer import score_prompts
from antiphon.engines.torch.sampling.sampler import Sampler
from antiphon.engines.torch.sequence import Sequence
from antiphon.engines.torch.step import Step


class PendingMasks(Protocol):
    """Masks that are being computed."""

    def wait(self) -> torch.Tensor | None:
        """int32 [rows, ceil(vocab / 32)], as ``Sampler.sample`` takes them."""
        ...


class Masks(Protocol):
    """What grammars allow next."""

    def begin(self, sequences: list[Sequence]) -> PendingMasks:
        """Start computing a row for each sequence."""
        ...


@attrs.define(eq=False)
class Launch:
    """A step that was launched."""

    _drawn: Drawn

    def drawn(self) -> Drawn:
        """A row for every drawing chunk, in the order of the step's chunks.

        On a CPU the work is done when the launch is.
        """
        return self._drawn


class Runner:
    """The decoder, its cache and the sampler; ``masks`` for sequences that have a grammar."""

    def __init__(
        self, decoder: Decoder, cache: KVCache, sampler: Sampler, masks: Masks | None = None
    ) -> None:
        self.decoder = decoder
        self.cache = cache
        self.sampler = sampler
        self.masks = masks
        self._dtype = decoder.weights.embedding.dtype
        self._device = decoder.weights.embedding.device

    @torch.inference_mode()
    def launch(self, step: Step) -> Launch:
        """Forward, score and sample."""
        sequences = step.drawing
        pending = None
        if self.masks is not None and any(one.grammar is not None for one in sequences):
            pending = self.masks.begin(sequences)  # beside the forward pass
        groups = attention_groups(step.chunks, self._device)
        config = self.decoder.config
        batch = build_batch(
            groups,
            drawing=step.chunks,
            heads_per_key=config.heads // config.kv_heads,
            window=config.sliding_window,
            padding_page=self.cache.padding_page,
            dtype=self._dtype,
            device=self._device,
        )
        states = self.decoder(batch, self.cache)
        score_prompts([chunk for group in groups for chunk in group], states, self.decoder.logits)
        if not sequences:
            return Launch(Drawn([]))
        logits = self.decoder.logits(states.index_select(0, batch.drawing))
        drawn = self.sampler.sample(logits, sequences, None if pending is None else pending.wait())
        for row, sequence in enumerate(sequences):
            grammar = sequence.grammar
            if grammar is None or row in drawn.refused:
                continue
            if not grammar.advance(drawn.token[row]):
                drawn.refused[row] = EngineError(
                    code="grammar_invalid", message="the form cannot be followed any further"
                )
        return Launch(drawn)
