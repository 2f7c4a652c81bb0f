"""Random models made, saved and run by the ``transformers`` library, to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
import transformers
from transformers import modeling_gguf_pytorch_utils

from antiphon.models.files import ModelFiles
from engines.torch.reference import Array
from engines.torch.tiny_models import Weights

read: Any = modeling_gguf_pytorch_utils.load_gguf_checkpoint
SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}


def random_model(config: Any) -> Any:
    """A model of the configuration; every weight counts, biases and norms too."""
    dice = torch.Generator().manual_seed(3)
    factory: Any = transformers.AutoModelForCausalLM
    model = factory.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5, generator=dice)
            else:
                weight.normal_(0, 1.5 / weight.shape[-1] ** 0.5, generator=dice)
    return model


def saved(model: Any, path: Path, **how: Any) -> ModelFiles:
    """The model as ``transformers`` writes it; ``max_shard_size`` makes shards."""
    model.save_pretrained(path, **how)
    return ModelFiles(path.name, "hf", path)


def weights_of(model: Any) -> Weights:
    """By name; a tied head is not among them."""
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


def logits_of(model: Any, ids: Sequence[int]) -> Array:
    """[len(ids), vocab]"""
    with torch.inference_mode():
        result: Array = model(torch.tensor([list(ids)])).logits[0].double().numpy()
    return result


def greedy_of(model: Any, ids: Sequence[int], count: int) -> list[int]:
    """The ``count`` likeliest tokens after ``ids``; no token ends them."""
    prompt = torch.tensor([list(ids)])
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return [int(token) for token in out[0, len(ids) :]]


def likeliest_along(model: Any, ids: Sequence[int], said: Sequence[int]) -> list[int]:
    """The likeliest token after ``ids``, and after each of ``said`` but the last.

    They are ``said`` itself exactly where ``greedy_of`` would say it, token by token; in one pass.
    """
    logits = logits_of(model, [*ids, *said[:-1]])
    return [int(token) for token in logits[len(ids) - 1 :].argmax(-1)]


def default_model_of(path: Path) -> Any:
    """A llama GGUF file through the library's own code: its names, row orders and settings.

    Most of its time is saved: it opens the file once, without the lists of tokens, and makes its
    table of names once instead of for every module.
    """
    reader = gguf.GGUFReader(path)
    for key in [key for key in reader.fields if key.startswith("tokenizer.ggml.")]:
        if len(reader.fields[key].data) > 1:
            del reader.fields[key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "GGUFReader", lambda _: reader)
        patch.setattr(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map))
        config = transformers.LlamaConfig(**read(str(path))["config"])
        model: Any = transformers.LlamaForCausalLM(config)
        held = read(str(path), return_tensors=True, model_to_load=model)["tensors"]
    missing, strange = model.load_state_dict(held, strict=False)
    assert (missing, strange) == (["lm_head.weight"], []), "tied"
    return model.eval()


def permuted(weights: Weights, heads: int, kv_heads: int) -> Weights:
    """Query and key rows as llama.cpp's converter writes them for ``llama``: pairs side by side."""

    def pairs(rows: Any, count: int) -> Any:
        halves = rows.reshape(count, 2, -1, *rows.shape[1:])
        return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows.shape))

    turned = dict(weights)
    for name, rows in weights.items():
        if ".q_proj." in name:
            turned[name] = pairs(rows, heads)
        elif ".k_proj." in name:
            turned[name] = pairs(rows, kv_heads)
    return turned
