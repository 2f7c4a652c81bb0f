"""Decoders of published models have as many parameters as their model cards say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from antiphon.engines.torch.weights.hf_config import read_config
from antiphon.engines.torch.weights.layout import tensor_shapes

PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    "Llama-3.2-1B": (
        1_235_814_400,
        {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "head_dim": 64,
            "hidden_act": "silu",
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "max_position_embeddings": 131072,
            "mlp_bias": False,
            "num_attention_heads": 32,
            "num_hidden_layers": 16,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
            "tie_word_embeddings": True,
            "torch_dtype": "bfloat16",
            "vocab_size": 128256,
        },
    ),
    "Mistral-7B-v0.1": (
        7_241_732_096,
        {
            "architectures": ["MistralForCausalLM"],
            "hidden_act": "silu",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "max_position_embeddings": 32768,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-05,
            "rope_theta": 10000.0,
            "sliding_window": 4096,
            "tie_word_embeddings": False,
            "vocab_size": 32000,
        },
    ),
    "Qwen2.5-0.5B": (
        494_032_768,
        {
            "architectures": ["Qwen2ForCausalLM"],
            "hidden_act": "silu",
            "hidden_size": 896,
            "intermediate_size": 4864,
            "max_position_embeddings": 32768,
            "max_window_layers": 24,
            "num_attention_heads": 14,
            "num_hidden_layers": 24,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0,
            "sliding_window": 32768,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "vocab_size": 151936,
        },
    ),
    "Qwen3-0.6B": (
        596_049_920,
        {
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "head_dim": 128,
            "hidden_act": "silu",
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "max_position_embeddings": 40960,
            "max_window_layers": 28,
            "num_attention_heads": 16,
            "num_hidden_layers": 28,
            "num_key_value_heads": 8,
            "rms_norm_eps": 1e-06,
            "rope_scaling": None,
            "rope_theta": 1000000,
            "sliding_window": None,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "vocab_size": 151936,
        },
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters(tmp_path: Path, name: str) -> None:
    count, keys = PUBLISHED[name]
    (tmp_path / "config.json").write_text(json.dumps(keys))
    config = read_config(tmp_path)
    assert sum(math.prod(shape) for _, shape in tensor_shapes(config)) == count
    assert config.sliding_window == (4096 if name.startswith("Mistral") else None)
