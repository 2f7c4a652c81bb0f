"""The decoder's tensors, from an earlier start's conversion where there is one.

A GGUF file's tensors are unpacked and packed again for this machine's kernels; what that made is
kept in the user's cache. A folder of safetensors is read as it is: there is nothing to save.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from antiphon.engines.torch.models import linear, weights
from antiphon.engines.torch.models.linear import packing
from antiphon.engines.torch.models.weights import DecoderWeights, flatten, rebuild
from antiphon.engines.torch.weights.assemble import Form, assemble, resolve_form
from antiphon.engines.torch.weights.source import WeightSource
from antiphon.engines.torch.weights.stored import StoredTensors
from antiphon.models.cache import cache_folder, sha256
from antiphon.models.files import ModelFiles

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
    made = assemble(source, dtype, device, form)
    stored.write(name, {key: tensor.cpu() for key, tensor in flatten(made).items()})
    return made


def conversion_name(path: Path, dtype: torch.dtype, device: torch.device, form: Form) -> str:
    """Names all that decides the tensors: file, settings, torch, the machine, and our own code."""
    decisive = (sha256(path), str(dtype), device.type, form, packing(), code_digest())
    digest = hashlib.sha256(repr(decisive).encode()).hexdigest()
    return f"{path.stem[:60]}-{digest[:24]}"


def code_digest() -> str:
    """Of the modules that read, pack and name tensors: what older code made is not taken."""
    modules = [*Path(__file__).parent.glob("*.py"), Path(linear.__file__), Path(weights.__file__)]
    digest = hashlib.sha256()
    for path in sorted(modules):
        digest.update(path.read_bytes())
    return digest.hexdigest()
