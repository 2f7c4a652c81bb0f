"""The forms in which a matrix [out, in] is held and multiplied: ``x @ weight.T + bias``.

On a CPU one row is a matter of how many bytes the weights take, many rows of how fast the products
are. So the forms of fewer bits hold the floating weights as well and multiply by those from some
number of rows on (docs/decisions/022-speed-on-a-cpu.md has the figures).
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar, TypeAlias

import attrs
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

INT4_GROUP = 32
"""Weights of a row that share a scale and an offset."""
INT4_ROWS = 12
"""Up to so many rows the four-bit product is faster than bfloat16's (AVX512, measured)."""
INT8_ROWS = 4
"""The same of the eight-bit product."""


@attrs.define(eq=False)
class Linear:
    """The matrix in the type that the model computes in."""

    kind: ClassVar[str] = "float"
    weight: torch.Tensor
    bias: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]."""
        return F.linear(x, self.weight, self.bias)


@attrs.define(eq=False)
class Int4Linear:
    """Four bits a weight: ``scale * (code - 8) + offset``, a scale and an offset for 32 of a row.

    The codes are those of the file, if it holds such; scales and offsets are rounded to bfloat16.
    """

    kind: ClassVar[str] = "int4"
    packed: torch.Tensor
    """The codes in the order that this machine's kernel reads: ``packing`` tells which."""
    scales: torch.Tensor
    """bfloat16 [in / 32, out, 2]: scale and offset."""
    weight: torch.Tensor
    """The same matrix in the model's type, for many rows."""
    bias: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]."""
        if x.shape[0] > INT4_ROWS:
            return F.linear(x, self.weight, self.bias)
        # The kernel is fast in bfloat16 only: in float32 torch has a slow one.
        given = x if x.dtype is torch.bfloat16 else x.bfloat16()
        made = torch._weight_int4pack_mm_for_cpu(given, self.packed, INT4_GROUP, self.scales)
        made = made if given is x else made.to(x.dtype)
        return made if self.bias is None else made.add_(self.bias)


@attrs.define(eq=False)
class Int8Linear:
    """Eight bits a weight, a scale for 32 of a row: ``scale * (16 * high + low)``.

    The halves of a code are two matrices of four bits with one scale. So eight bits take as long as
    one scale a row would in torch's own product of eight bits, and lose far less.
    """

    kind: ClassVar[str] = "int8"
    high: torch.Tensor
    """As ``Int4Linear.packed``: the upper halves of the codes, -8 to 7."""
    high_scales: torch.Tensor
    low: torch.Tensor
    """The lower halves, 0 to 15."""
    low_scales: torch.Tensor
    weight: torch.Tensor
    """The matrix in the model's type, for many rows."""
    bias: torch.Tensor | None = None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]."""
        if x.shape[0] > INT8_ROWS:
            return F.linear(x, self.weight, self.bias)
        row = x.bfloat16()
        made = torch._weight_int4pack_mm_for_cpu(row, self.high, INT4_GROUP, self.high_scales)
        made = made.add_(
            torch._weight_int4pack_mm_for_cpu(row, self.low, INT4_GROUP, self.low_scales)
        )
        made = made if made.dtype is x.dtype else made.to(x.dtype)
        return made if self.bias is None else made.add_(self.bias)


@attrs.define(eq=False)
class Int8Head:
    """The matrix of the logits: eight bits a weight, two bytes an activation, integer sums.

    Every row of ``x`` is written as two rows of bytes, ``(coarse + fine / (2 * steps)) * step``
    with ``steps`` of ``byte_steps``, so 13 bits or more are left of an activation and none of
    bfloat16's eight is lost. Integers have one sum in whatever order: a row's logits do not depend
    on the rows beside it.
    """

    kind: ClassVar[str] = "head8"
    codes: torch.Tensor
    """int8 [out, in]"""
    scales: torch.Tensor
    """float32 [out]"""
    _packed: torch.Tensor = attrs.field(init=False)
    _zeros: torch.Tensor = attrs.field(init=False)
    _steps: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._steps = byte_steps()
        self._packed = torch.ops.onednn.qlinear_prepack(self.codes, None)
        self._zeros = torch.zeros(len(self.codes), dtype=torch.int32)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> float32 [rows, out]."""
        rows, steps = x.shape[0], self._steps
        step = x.abs().amax(-1, keepdim=True).float().clamp_(min=1e-30).div_(steps)
        exact = x / step
        coarse = exact.round()
        fine = exact.sub_(coarse).mul_(2 * steps)
        # A half more than the zero point: the conversion cuts off, and so it rounds.
        both = torch.cat((coarse, fine)).add_(steps + 1.5).to(torch.uint8)
        sums = _product(both, steps + 1, self._packed, self.scales, self._zeros)
        return sums[:rows].mul_(step).addcmul_(sums[rows:], step, value=0.5 / steps)


def _product(
    x: torch.Tensor, zero: int, packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor
) -> torch.Tensor:
    """uint8 [rows, in], less ``zero``, times int8 [out, in] -> float32 [rows, out]."""
    made: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
        x, 1.0, zero, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "",
    )  # fmt: skip
    return made


@cache
def byte_steps() -> int:
    """Steps of a byte of an activation to either side of zero: 127, or 63 on a processor that adds
    two products of bytes in sixteen bits (AVX2 and AVX512 without VNNI), where more would not fit.

    It is tried: what a library does on which processor changes. Source: oneDNN's guide to int8.
    """
    packed = torch.ops.onednn.qlinear_prepack(torch.full((16, 64), 127, dtype=torch.int8), None)
    full = torch.full((1, 64), 255, dtype=torch.uint8)
    made = _product(full, 128, packed, torch.ones(16), torch.zeros(16, dtype=torch.int32))
    return 127 if bool((made == 64.0 * 127 * 127).all()) else 63


AnyLinear: TypeAlias = Linear | Int4Linear | Int8Linear
Head: TypeAlias = Linear | Int8Head


def packing() -> str:
    """What the order of packed codes depends on, for whoever keeps them."""
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}"
