"""The decoder's tensors, from an earlier start's conversion where there is one.

A GGUF file's tensors are unpacked and packed again for this machine's kernels; what that made is
kept in the user's cache. A folder of safetensors is read as it is: there is nothing to save.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from antiphon.engines.torch.models.linear import packing
from antiphon.engines.torch.models.weights import DecoderWeights, flatten, rebuild
from antiphon.engines.torch.weights.assemble import Form, assemble, resolve_form
from antiphon.engines.torch.weights.source import WeightSource
from antiphon.engines.torch.weights.stored import StoredTensors
from antiphon.models.cache import cache_folder, sha256
from antiphon.models.files import ModelFiles

FORMAT = 2
"""Goes up whenever the same file would be converted to other tensors, or to other names."""
SMALLEST = 16 << 20
"""Bytes of a file from which on keeping its tensors is worth the space."""
FOLDER = "converted"


def load_weights(
    files: ModelFiles,
    source: WeightSource,
    dtype: torch.dtype,
    device: torch.device,
    form: Form,
    cache: Path | None = None,
) -> DecoderWeights:
    """The weights of ``source``, which is ``files`` opened, as ``assemble`` gives them.

    ``cache``: the folder of what was converted before; None: in the user's cache folder. Raises
    ``EngineStartError`` as ``assemble`` does, never for the sake of the cache.
    """
    form = resolve_form(form, dtype, device)
    if files.kind != "gguf" or files.path.stat().st_size < SMALLEST:
        return assemble(source, dtype, device, form)
    stored = StoredTensors(cache or cache_folder() / FOLDER)
    name = conversion_name(files.path, dtype, device, form)
    if (kept := stored.read(name)) is not None:
        return rebuild({key: tensor.to(device) for key, tensor in kept.items()})
    weights = assemble(source, dtype, device, form)
    stored.write(name, {key: tensor.cpu() for key, tensor in flatten(weights).items()})
    return weights


def conversion_name(path: Path, dtype: torch.dtype, device: torch.device, form: Form) -> str:
    """Names all that decides the tensors: the file's bytes, the settings, torch and the machine."""
    decisive = (sha256(path), str(dtype), device.type, form, packing(), FORMAT)
    digest = hashlib.sha256(repr(decisive).encode()).hexdigest()
    return f"{path.stem[:60]}-{digest[:24]}"
