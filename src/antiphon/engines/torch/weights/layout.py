"""Which tensors a decoder has, and of what shapes; a file is held against it before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import DecoderConfig

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


def tensor_shapes(config: DecoderConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor by its name in Hugging Face's Llama, one after the other."""
    hidden, q, kv, ffn = config.hidden_size, config.q_size, config.kv_size, config.ffn_size
    matrices = {
        "self_attn.q_proj": (q, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, q),
        "mlp.gate_proj": (ffn, hidden),
        "mlp.up_proj": (ffn, hidden),
        "mlp.down_proj": (hidden, ffn),
    }
    vectors = {"input_layernorm": hidden, "post_attention_layernorm": hidden}
    if config.qk_norm:
        vectors |= {"self_attn.q_norm": config.head_dim, "self_attn.k_norm": config.head_dim}
    yield EMBEDDING, (config.vocab_size, hidden)
    yield "model.norm.weight", (hidden,)
    if not config.tied_embeddings:
        yield HEAD, (config.vocab_size, hidden)
    for layer in range(config.layers):
        prefix = f"model.layers.{layer}"
        for name, width in vectors.items():
            yield f"{prefix}.{name}.weight", (width,)
        for name, shape in matrices.items():
            yield f"{prefix}.{name}.weight", shape
            if name.rpartition(".")[2] in config.biases:
                yield f"{prefix}.{name}.bias", shape[:1]


def check_layout(config: DecoderConfig, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Whether a file with tensors of ``shapes`` holds this decoder and nothing else.

    Raises ``EngineStartError`` for a tensor that is missing, has another shape than the
    configuration says, or is not part of the decoder. Nothing is allocated before: a configuration
    of absurd sizes costs no memory.
    """
    known = {HEAD} if config.tied_embeddings else set()  # some files hold the copy
    for name, shape in tensor_shapes(config):
        if name not in shapes:
            raise EngineStartError(f"tensor {name} is missing")
        if shapes[name] != shape:
            raise EngineStartError(
                f"tensor {name} has shape {list(shapes[name])}, not {list(shape)}"
            )
        known.add(name)
    if surplus := sorted(shapes.keys() - known):
        raise EngineStartError(
            f"tensor {surplus[0]} is not part of the decoder of {config.layers} layers that the "
            f"configuration describes ({len(surplus)} such tensors)"
        )
