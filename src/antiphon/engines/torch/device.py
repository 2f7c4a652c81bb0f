"""Which device and data type the model runs in."""

from __future__ import annotations

import torch

from antiphon.engines.port import EngineStartError
from antiphon.engines.torch.host_memory import host_memory

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
CPU_SHARE = 0.25
"""Of the memory that the process may use, for the KV cache; it is touched only as it fills."""
CUDA_SHARE = 0.8
"""Of the free device memory after the weights are loaded."""


def resolve_device(name: str) -> torch.device:
    """``cpu``, ``cuda``, ``cuda:N`` or ``auto``. Raises ``EngineStartError`` if it is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdecimal()) or name == "cpu:":
        raise EngineStartError(f"device {name!r} is not known; give cpu, cuda, cuda:N or auto")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise EngineStartError(f"device {name!r} is not there: torch sees {count} CUDA devices")
    return torch.device(name)


def resolve_dtype(name: str, device: torch.device) -> torch.dtype:
    """The named type, or the one that suits the device for ``auto``."""
    if name == "auto":
        return torch.bfloat16 if has_fast_bfloat16(device) else torch.float32
    if name not in DTYPES:
        raise EngineStartError(f"dtype {name!r} is not known; give {', '.join(DTYPES)} or auto")
    return DTYPES[name]


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 products run on hardware made for them.

    On a CPU that is AVX512-BF16 or AMX. Without them torch multiplies row by row: a batch of 8
    then takes eight times as long as one row (measured on AVX2), where float32 takes twice.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # torch has no public question for single CPU features.
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def spare_bytes(device: torch.device) -> int:
    """Memory that the KV cache may take by default."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * CUDA_SHARE)
    return int(host_memory() * CPU_SHARE)
