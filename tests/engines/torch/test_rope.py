"""The factors of positions: those of the formula, and made without much at hand."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from antiphon.engines.torch.models.config import DecoderConfig
from antiphon.engines.torch.models.rope import RopeTable, frequencies

LLAMA = DecoderConfig(
    vocab_size=8, hidden_size=32, layers=1, heads=4, kv_heads=2, head_dim=8, ffn_size=8,
    norm_eps=1e-5, rope_theta=1e4, context_length=100, tied_embeddings=True,
)  # fmt: skip
POSITIONS = 300_000
LARGEST = 1 << 20
"""Bytes of float64 at once; those of all positions are nine times as many."""


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the largest tensor of float64 that is made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = self.all = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.dtype == torch.float64:
            self.numbers = max(self.numbers, made.numel())
            self.all += made.numel()
        return made


def test_the_factors_of_far_positions_are_the_formula_s_and_no_long_table_is_at_hand() -> None:
    with Largest() as largest:
        table = RopeTable(LLAMA, POSITIONS, torch.float32, torch.device("cpu"))
    assert largest.numbers * 8 <= LARGEST
    at = torch.tensor([0, 1, 16_383, 16_384, 131_071, 131_072, POSITIONS - 1])
    qkv = torch.ones(len(at), LLAMA.heads + 2 * LLAMA.kv_heads, LLAMA.head_dim)
    rotation = table.at(at)
    rotation.turn(qkv.flatten(1))
    angles = torch.outer(at.double(), frequencies(LLAMA))
    wanted = torch.cat((angles.cos() - angles.sin(), angles.cos() + angles.sin()), dim=1).float()
    keys, values = rotation.keys_values.tensor_split(2)
    torch.testing.assert_close(keys[0], wanted)
    torch.testing.assert_close(rotation.queries[:, 0], wanted * LLAMA.head_dim**-0.5)
    torch.testing.assert_close(values[0], torch.ones_like(wanted))


def test_a_table_for_more_positions_than_ever_come_is_there_at_once() -> None:
    with Largest() as largest:
        table = RopeTable(LLAMA, 2_000_000, torch.float32, torch.device("cpu"))
    assert largest.all < 5_000_000
    with Largest() as largest:
        table.at(torch.tensor([5, 100_000]))
    assert largest.all == 0
