"""Four-bit blocks of GGUF, taken apart without turning them into numbers first.

Source: ggml's ``block_q4_0`` and ``block_q4_1``. A block is 32 weights of a row: a scale, for Q4_1
a minimum, both float16, and 16 bytes whose low halves are the first 16 codes and whose high halves
are the others. Q4_0 counts its codes from -8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from antiphon.engines.torch.weights.source import Q4_GROUP, Q4Blocks

HEADERS = {"Q4_0": 2, "Q4_1": 4}
"""Bytes before a block's codes, by the type's name."""


def split_blocks(rows: np.ndarray[Any, np.dtype[np.uint8]], kind: str) -> Q4Blocks:
    """The parts of ``rows`` [out, bytes of a row], whose type is a key of ``HEADERS``."""
    header = HEADERS[kind]
    out = len(rows)
    blocks = rows.reshape(out, -1, header + Q4_GROUP // 2)
    packed = blocks[:, :, header:]
    codes = np.concatenate((packed & 15, packed >> 4), axis=-1)
    numbers = blocks[:, :, :header].copy().view(np.float16).astype(np.float32)
    scale = numbers[:, :, 0]
    minimum = numbers[:, :, 1] if kind == "Q4_1" else -8 * scale
    return Q4Blocks(
        codes=torch.from_numpy(codes.reshape(out, -1)),
        scale=torch.from_numpy(np.ascontiguousarray(scale)),
        minimum=torch.from_numpy(np.ascontiguousarray(minimum)),
    )
