"""``config.json`` of Llama, Mistral, Qwen2 and Qwen3.

Source: the configuration classes of the ``transformers`` library and their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from antiphon.engines.torch.models.config import (
    DecoderConfig,
    LinearScaling,
    Llama3Scaling,
    RopeScaling,
)
from antiphon.engines.torch.weights.fields import Fields
from antiphon.models.hf_folder import CONFIG, read_object

QKV = frozenset({"q_proj", "k_proj", "v_proj"})
ATTENTION = QKV | {"o_proj"}
MLP = frozenset({"gate_proj", "up_proj", "down_proj"})


DEFAULT_WINDOW = 4_096
"""Of a Mistral whose configuration does not speak of it; null is none."""


@attrs.frozen(kw_only=True)
class _Family:
    """What an architecture makes of its configuration."""

    biases: frozenset[str] = frozenset()
    """Projections that have one without being asked for it."""
    bias_keys: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    """Flags that it reads, and the projections that they give a bias."""
    qk_norm: bool = False
    window: Literal["never", "always", "on demand"] = "never"
    """When ``sliding_window`` counts; on demand is with ``use_sliding_window``."""
    explicit: frozenset[str] = frozenset()
    """Keys whose default does not follow from the others, and which must be there."""


FAMILIES = {
    "LlamaForCausalLM": _Family(bias_keys={"attention_bias": ATTENTION, "mlp_bias": MLP}),
    "MistralForCausalLM": _Family(window="always", explicit=frozenset({"num_key_value_heads"})),
    "Qwen2ForCausalLM": _Family(
        biases=QKV, window="on demand", explicit=frozenset({"num_key_value_heads"})
    ),
    "Qwen3ForCausalLM": _Family(
        bias_keys={"attention_bias": ATTENTION},
        qk_norm=True,
        window="on demand",
        explicit=frozenset({"num_key_value_heads", "head_dim"}),
    ),
}


def read_config(path: Path) -> DecoderConfig:
    """The decoder that the folder's ``config.json`` describes.

    Raises ``StartupError`` if it cannot be read, ``EngineStartError`` naming key and value for
    what is missing or not supported.
    """
    fields = Fields(read_object(path / CONFIG), CONFIG)
    family = _family(fields)
    fields.only("hidden_act", "silu")
    fields.only("quantization_config")
    fields.only("partial_rotary_factor", 1.0)
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    shared = None if "num_key_value_heads" in family.explicit else heads
    theta, scaling = _rope(fields)
    context_length = fields.count("max_position_embeddings")
    return DecoderConfig(
        vocab_size=fields.count("vocab_size"),
        hidden_size=hidden,
        layers=fields.count("num_hidden_layers"),
        heads=heads,
        kv_heads=fields.count("num_key_value_heads", shared),
        head_dim=_head_dim(fields, hidden, heads, family),
        ffn_size=fields.count("intermediate_size"),
        norm_eps=fields.number("rms_norm_eps"),
        rope_theta=theta,
        rope_scaling=scaling,
        context_length=context_length,
        tied_embeddings=fields.flag("tie_word_embeddings"),
        qk_norm=family.qk_norm,
        sliding_window=_window(fields, family),
        biases=family.biases.union(
            *(its for key, its in family.bias_keys.items() if fields.flag(key))
        ),
    )


def _family(fields: Fields) -> _Family:
    named = fields.values.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    if not isinstance(first, str) or first not in FAMILIES:
        raise fields.refuse("architectures", " or ".join(FAMILIES))
    return FAMILIES[first]


def _head_dim(fields: Fields, hidden: int, heads: int, family: _Family) -> int:
    if fields.values.get("head_dim") is not None or "head_dim" in family.explicit:
        return fields.count("head_dim")
    if hidden % heads:
        raise fields.refuse("num_attention_heads", f"a divisor of hidden_size {hidden}")
    return hidden // heads


_KINDS = frozenset({"full_attention", "sliding_attention"})


def _window(fields: Fields, family: _Family) -> int | None:
    """The window of every layer; None for one that no context is longer than.

    Layers that differ in it are refused.
    """
    layers = fields.count("num_hidden_layers")
    windowed, key = _windowed_layers(fields, family, layers)
    if not windowed:
        return None
    default = DEFAULT_WINDOW if family.window == "always" else None
    window = fields.count("sliding_window", default)
    if window >= fields.count("max_position_embeddings"):
        return None
    if windowed != layers:
        raise fields.refuse(key, "the same window, or none, in all layers")
    if family.window == "never":  # the reference would not read it
        raise fields.refuse(key, "null with this architecture")
    return window


def _windowed_layers(fields: Fields, family: _Family, layers: int) -> tuple[int, str]:
    """How many layers have a window, and the key that says so."""
    if family.window != "on demand":
        default = DEFAULT_WINDOW if family.window == "always" else None
        absent = fields.values.get("sliding_window", default) is None
        return (0 if absent else layers), "sliding_window"
    kinds = fields.values.get("layer_types")
    if kinds is not None:
        if (
            not isinstance(kinds, list)
            or len(kinds) != layers
            or not set(map(str, kinds)) <= _KINDS
        ):
            raise fields.refuse("layer_types", f"{layers} times {' or '.join(sorted(_KINDS))}")
        if "sliding_attention" in kinds and not fields.flag("use_sliding_window"):
            raise fields.refuse("layer_types", "full_attention without use_sliding_window")
        return kinds.count("sliding_attention"), "layer_types"
    if not fields.flag("use_sliding_window"):
        return 0, "use_sliding_window"
    return max(0, layers - fields.index("max_window_layers")), "max_window_layers"


def _rope(fields: Fields) -> tuple[float, RopeScaling | None]:
    """Base and scaling: ``rope_parameters``, or the older ``rope_scaling`` and ``rope_theta``."""
    key = "rope_parameters" if fields.values.get("rope_parameters") else "rope_scaling"
    given = fields.values.get(key) or {}
    if not isinstance(given, dict) or any(isinstance(value, dict) for value in given.values()):
        raise fields.refuse(key, "one object for all layers")
    rule = Fields(given, f"{fields.source}: {key}")
    theta = rule.number("rope_theta", fields.number("rope_theta", 10_000.0))
    rule.only("partial_rotary_factor", 1.0)
    name = "rope_type" if "rope_type" in given else "type"
    return theta, _scaling(rule, name, given.get(name) or "default")


def _scaling(rule: Fields, name: str, kind: Any) -> RopeScaling | None:
    match kind:
        case "default":
            return None
        case "linear":
            return LinearScaling(rule.number("factor"))
        case "llama3":
            low, high = rule.number("low_freq_factor"), rule.number("high_freq_factor")
            if high <= low:
                raise rule.refuse("high_freq_factor", f"a number above low_freq_factor {low}")
            return Llama3Scaling(
                factor=rule.number("factor"),
                low_freq_factor=low,
                high_freq_factor=high,
                original_context_length=rule.count("original_max_position_embeddings"),
            )
    raise rule.refuse(name, "'default', 'linear' or 'llama3'")
