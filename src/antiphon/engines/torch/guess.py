"""Whether a model will probably run on CUDA, told without torch, which takes seconds to import."""

from __future__ import annotations

import os
from pathlib import Path

DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""What the driver puts there: on Linux, and on Linux within Windows."""


def is_cuda(device: str) -> bool:
    """Whether ``device``, as ``EngineOptions`` has it, is CUDA; for ``auto`` a good guess."""
    if device != "auto":
        return device.startswith("cuda")
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return shown not in ("", "-1") and any(driver.exists() for driver in DRIVERS)
