"""One step on the device: chunks in, drawn tokens out."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from antiphon.engines.torch.batch import attention_groups, build_batch
from antiphon.engines.torch.drawn import DrawnToken
from antiphon.engines.torch.models.decoder import Decoder
from antiphon.engines.torch.models.kv_cache import KVCache
from antiphon.engines.torch.sampling.prompt_scorer import score_prompts
from antiphon.engines.torch.sampling.sampler import sample
from antiphon.engines.torch.scheduler import Chunk


class Runner:
    """The decoder, its cache and the sampler."""

    def __init__(self, decoder: Decoder, cache: KVCache) -> None:
        self.decoder = decoder
        self.cache = cache
        self._dtype = decoder.weights.embedding.dtype
        self._device = decoder.weights.embedding.device

    @torch.inference_mode()
    def run(self, chunks: Sequence[Chunk]) -> dict[int, DrawnToken]:
        """Forward, score and sample; the token of every chunk that draws, by key."""
        groups = attention_groups(chunks)
        config = self.decoder.config
        batch = build_batch(
            groups,
            heads_per_key=config.heads // config.kv_heads,
            window=config.sliding_window,
            padding_page=self.cache.padding_page,
            dtype=self._dtype,
            device=self._device,
        )
        states = self.decoder(batch, self.cache)
        in_order = [chunk for group in groups for chunk in group]
        score_prompts(in_order, states, self.decoder.logits)
        drawing = [chunk.sequence for chunk in in_order if chunk.draws]
        if not drawing:
            return {}
        drawn = sample(self.decoder.logits(states[batch.drawing]), drawing)
        return {sequence.key: one for sequence, one in zip(drawing, drawn, strict=True)}
