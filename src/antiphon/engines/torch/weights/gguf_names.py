"""GGUF's names of tensors, and the order of the rows of its queries and keys.

Source: the converter of llama.cpp. For the architecture ``llama`` it stores query and key rows for
adjacent-pair rotary embedding (dimension 2i turns with 2i + 1), for ``qwen2`` and ``qwen3`` as
Hugging Face has them, half-split (dimension i turns with i + d / 2).
"""

from __future__ import annotations

import torch

MODEL_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def canonical_name(stored: str) -> str:
    """``blk.3.attn_q.weight`` -> ``model.layers.3.self_attn.q_proj.weight``.

    Names that are not part of such a model come back as they are.
    """
    parts = stored.split(".")
    if len(parts) == 2 and parts[0] in MODEL_NAMES:
        return f"{MODEL_NAMES[parts[0]]}.{parts[1]}"
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in LAYER_NAMES:
        return f"model.layers.{parts[1]}.{LAYER_NAMES[parts[2]]}.{parts[3]}"
    return stored


def half_split(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a q or k matrix (or bias) from adjacent-pair to half-split order."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)
