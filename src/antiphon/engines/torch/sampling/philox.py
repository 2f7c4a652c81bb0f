"""Random numbers that depend on seed and position alone.

Philox4x32-10: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). Key: the seed's
low and high word. Counter: (token div 4, position, 0, 0); word: token mod 4. So a draw is the same
in any batch, slot or order of steps, and on any device.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF


def philox(counter: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits in int64: counter [..., 4] and key [..., 2] to [..., 4]."""
    c0, c1, c2, c3 = counter.unbind(-1)
    k0, k1 = key.unbind(-1)
    for _ in range(ROUNDS):
        # int64 products wrap modulo 2**64, so their bits are those of the unsigned product.
        left, right = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (right >> 32 & MASK) ^ c1 ^ k0,
            right & MASK,
            (left >> 32 & MASK) ^ c3 ^ k1,
            left & MASK,
        )
        k0, k1 = (k0 + KEY_STEPS[0]) & MASK, (k1 + KEY_STEPS[1]) & MASK
    return torch.stack((c0, c1, c2, c3), dim=-1)


def gumbel(
    seeds: Sequence[int], positions: Sequence[int], vocab_size: int, device: torch.device
) -> torch.Tensor:
    """Gumbel noise of every token for each (seed, position): float32 [rows, vocab_size]."""
    keys = torch.tensor([[seed & MASK, seed >> 32] for seed in seeds], device=device)
    blocks = torch.arange(-(-vocab_size // 4), device=device)
    at = torch.tensor(positions, device=device)[:, None].expand(-1, len(blocks))
    zeros = torch.zeros_like(at)
    counter = torch.stack((blocks.expand_as(at), at, zeros, zeros), dim=-1)
    words = philox(counter, keys[:, None]).flatten(1)[:, :vocab_size]
    return noise(words)


def noise(words: torch.Tensor) -> torch.Tensor:
    """Gumbel noise of uniform words of 32 bits; float32.

    log1p keeps it finite or minus infinity. With the textbook's -log(-log(u)) the words next to
    2**32 round to u = 1, the noise is plus infinity and an impossible token wins.
    """
    uniform = (words.float() + 0.5) * 2.0**-32
    return -torch.log(-torch.log1p(-uniform))
