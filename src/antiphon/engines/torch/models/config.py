"""The shape of a Llama-family decoder, whatever file it came from."""

from __future__ import annotations

import attrs

from antiphon.engines.port import EngineStartError


@attrs.frozen
class LinearScaling:
    """Positions divided by ``factor``."""

    factor: float


@attrs.frozen
class Llama3Scaling:
    """Low frequencies divided by ``factor``, high ones kept, a ramp between (Llama 3.1)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_length: int


@attrs.frozen
class FrequencyFactors:
    """Each frequency divided by its own factor: how GGUF stores Llama 3.1's rule."""

    factors: tuple[float, ...]


RopeScaling = LinearScaling | Llama3Scaling | FrequencyFactors


@attrs.frozen(kw_only=True)
class DecoderConfig:
    """Sizes and constants of the decoder."""

    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_size: int
    norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None = None
    context_length: int
    """Positions the model was trained for."""
    tied_embeddings: bool
    """The output head is the embedding matrix."""
    qk_norm: bool = False
    """Every query and key head is RMS-normed before it is rotated (Qwen3)."""
    sliding_window: int | None = None
    """A token sees itself and ``sliding_window - 1`` before it; None: all before it."""
    biases: frozenset[str] = frozenset()
    """The projections that add a bias, such as ``q_proj`` or ``down_proj``."""

    def __attrs_post_init__(self) -> None:
        """Raises ``EngineStartError`` for sizes that do not go together."""
        if self.heads % self.kv_heads:
            raise EngineStartError(
                f"{self.heads} query heads cannot share {self.kv_heads} key heads evenly"
            )
        if self.head_dim % 2:
            raise EngineStartError(
                f"heads of {self.head_dim} dimensions cannot be rotated in pairs"
            )

    @property
    def q_size(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_dim
