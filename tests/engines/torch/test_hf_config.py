"""What a ``config.json`` says of the decoder, beside what the parity tests run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.models.config import DecoderConfig, Llama3Scaling
from antiphon.engines.torch.weights.hf_config import read_config
from antiphon.errors import StartupError
from engines.torch.tiny_models import Shape, hf_config

LLAMA, MISTRAL, QWEN2, QWEN3 = (
    {"architectures": [f"{name}ForCausalLM"]} for name in ("Llama", "Mistral", "Qwen2", "Qwen3")
)
LAYERS = Shape().layers
FULL, SLIDING = "full_attention", "sliding_attention"
NULLS = {"sliding_window", "head_dim"}
LONG = {"max_position_embeddings": 8192}


def config(path: Path, *parts: dict[str, Any]) -> DecoderConfig:
    changes: dict[str, Any] = {}
    for part in parts:
        changes |= part
    written = hf_config(Shape(), **changes)
    # A null is a value here; in the writer it leaves the key out.
    written |= {key: None for key, value in changes.items() if value is None and key in NULLS}
    (path / "config.json").write_text(json.dumps(written))
    return read_config(path)


@pytest.mark.parametrize(
    ("parts", "window"),
    [
        ([LLAMA], None),
        ([LLAMA, {"sliding_window": None}], None),
        ([LLAMA, {"sliding_window": 4096}], None),
        ([MISTRAL, {"sliding_window": None}], None),
        ([MISTRAL, {"sliding_window": 100}], 100),
        ([MISTRAL, {"sliding_window": 100, "layer_types": [SLIDING] * LAYERS}], 100),
        ([MISTRAL], None),
        ([MISTRAL, LONG], 4096),
        ([QWEN2, {"sliding_window": 100}], None),
        ([QWEN2, {"sliding_window": 100, "use_sliding_window": False}], None),
        ([QWEN2, {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 0}], 100),
        (
            [QWEN2, {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": LAYERS}],
            None,
        ),
        ([QWEN2, {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 28}], None),
        # Layers differ, but no context is longer than the window.
        (
            [QWEN2, {"use_sliding_window": True, "sliding_window": 2048, "max_window_layers": 1}],
            None,
        ),
        ([QWEN3, {"layer_types": [FULL] * LAYERS}], None),
        (
            [
                QWEN3,
                {
                    "use_sliding_window": True,
                    "sliding_window": 9,
                    "max_window_layers": 1,
                    "layer_types": [SLIDING] * LAYERS,
                },
            ],
            9,
        ),
    ],
    ids=str,
)
def test_windows(tmp_path: Path, parts: list[dict[str, Any]], window: int | None) -> None:
    assert config(tmp_path, *parts).sliding_window == window


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ([LLAMA, {"sliding_window": 9}], ["sliding_window", "9"]),
        ([MISTRAL, {"sliding_window": 0}], ["sliding_window", "0"]),
        ([MISTRAL, {"num_key_value_heads": None}], ["num_key_value_heads", "missing"]),
        (
            [QWEN2, {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}],
            ["max_window_layers", "1"],
        ),
        ([QWEN2, {"use_sliding_window": True, "sliding_window": 9}], ["max_window_layers"]),
        (
            [QWEN2, {"use_sliding_window": True, "max_window_layers": 0}],
            ["sliding_window", "missing"],
        ),
        ([QWEN2, {"use_sliding_window": "yes"}], ["use_sliding_window", "yes"]),
        ([QWEN3, {"layer_types": [FULL, SLIDING]}], ["layer_types", SLIDING]),
        ([QWEN3, {"layer_types": [FULL]}], ["layer_types", FULL]),
        ([QWEN3, {"layer_types": ["linear_attention"] * 2}], ["layer_types", "linear_attention"]),
        (
            [
                QWEN3,
                {
                    "layer_types": [FULL, SLIDING],
                    "use_sliding_window": True,
                    "sliding_window": 9,
                },
            ],
            ["layer_types", SLIDING],
        ),
        ([QWEN3, {"head_dim": None}], ["head_dim", "missing"]),
        ([LLAMA, {"head_dim": None, "num_attention_heads": 5}], ["num_attention_heads", "5", "64"]),
        ([LLAMA, {"attention_bias": 1}], ["attention_bias", "1"]),
        ([LLAMA, {"tie_word_embeddings": "no"}], ["tie_word_embeddings", "no"]),
        ([LLAMA, {"rope_theta": float("nan")}], ["rope_theta", "nan"]),
        ([LLAMA, {"rope_theta": 10**400}], ["rope_theta"]),
        ([LLAMA, {"rope_parameters": {"full_attention": {"rope_theta": 1.0}}}], ["one object"]),
        ([LLAMA, {"rope_parameters": [1]}], ["rope_parameters", "[1]"]),
        ([LLAMA, {"rope_scaling": {"rope_type": ["llama3"]}}], ["rope_type"]),
        (
            [
                LLAMA,
                {
                    "rope_scaling": {
                        "rope_type": "llama3",
                        "low_freq_factor": 4.0,
                        "high_freq_factor": 4,
                    }
                },
            ],
            ["high_freq_factor", "4"],
        ),
        ([LLAMA, {"architectures": [["LlamaForCausalLM"]]}], ["architectures"]),
        ([LLAMA, {"architectures": "LlamaForCausalLM"}], ["architectures"]),
    ],
    ids=str,
)
def test_what_is_refused(tmp_path: Path, parts: list[dict[str, Any]], named: list[str]) -> None:
    with pytest.raises(EngineStartError) as caught:
        config(tmp_path, *parts)
    for name in named:
        assert name in str(caught.value)


def test_which_projections_add_a_bias(tmp_path: Path) -> None:
    qkv, mlp = {"q_proj", "k_proj", "v_proj"}, {"gate_proj", "up_proj", "down_proj"}
    wanted = {"attention_bias": True, "mlp_bias": True}
    assert config(tmp_path, LLAMA).biases == set()
    assert config(tmp_path, LLAMA, wanted).biases == qkv | {"o_proj"} | mlp
    # The others read fewer keys, or none.
    assert config(tmp_path, MISTRAL, wanted).biases == set()
    assert config(tmp_path, QWEN2).biases == qkv
    assert config(tmp_path, QWEN2, {"attention_bias": False}).biases == qkv
    assert config(tmp_path, QWEN3, wanted).biases == qkv | {"o_proj"}
    assert [config(tmp_path, one).qk_norm for one in (LLAMA, MISTRAL, QWEN2, QWEN3)] == [
        *(False, False, False),
        True,
    ]


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_the_stored_type_decides_nothing(tmp_path: Path, key: str) -> None:
    """Tensors say what they are themselves."""
    assert config(tmp_path, {key: "bfloat16"}) == config(tmp_path)


def test_rope_in_its_two_places(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "factor": 8.0}
    rule |= {"rope_type": "llama3", "original_max_position_embeddings": 64}
    old = config(tmp_path, {"rope_theta": 500.0, "rope_scaling": rule})
    both = {"rope_theta": None, "rope_parameters": rule | {"rope_theta": 500.0}}
    assert config(tmp_path, both) == old
    assert old.rope_scaling == Llama3Scaling(8.0, 1.0, 4.0, 64)
    assert config(tmp_path, {"rope_theta": None}).rope_theta == 10_000.0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *hf_config(Shape()),
        *("sliding_window", "layer_types", "use_sliding_window", "max_window_layers"),
        *("rope_parameters", "rope_scaling", "attention_bias", "mlp_bias"),
        *("quantization_config", "partial_rotary_factor"),
    ]
)


@given(architecture=st.sampled_from([LLAMA, MISTRAL, QWEN2, QWEN3]), data=st.data())
def test_any_value_is_read_or_refused(
    architecture: dict[str, Any], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Never another error, and never a decoder of senseless sizes."""
    changes = data.draw(st.dictionaries(KEYS, VALUES, max_size=3))
    path = tmp_path_factory.mktemp("config")
    (path / "config.json").write_text(json.dumps(hf_config(Shape()) | architecture | changes))
    try:
        read = read_config(path)
    except (EngineStartError, StartupError):
        return
    sizes = (read.vocab_size, read.hidden_size, read.layers, read.heads, read.kv_heads)
    assert min(*sizes, read.head_dim, read.ffn_size, read.context_length) >= 1
    assert read.heads % read.kv_heads == 0
    assert read.rope_theta > 0
