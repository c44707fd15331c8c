"""Int4 weights in groups of 32 that share a multiplier of their output's scale."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

from sparsact.inference.weights.integer import Arrays, IntegerWeights, arrays_of
from sparsact.kernels.int4_linear import (
    INT4_GROUP,
    LARGEST_MULTIPLIER,
    Int4Linear,
    pack_int4,
    quantize_rows,
    tiled_multipliers,
    unpack_int4,
    untiled_multipliers,
)
from sparsact.kernels.int8_linear import tiled, untiled

SMALLEST_STEP: Final = float(np.finfo(np.float32).tiny)  # of int4 weights: its reciprocal is finite


class Int4Weights(IntegerWeights):
    """Int4 weights in groups of 32 inputs of an output or, ``by_input``, of 32 outputs of an input."""

    def _product_of(self, arrays: Arrays) -> Int4Linear:
        return Int4Linear(arrays["packed"], arrays["multipliers"], arrays["scale"], arrays["bias"], self._columns)

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> Int4Weights:
        """Integers, multipliers and scales as :func:`grouped_weight` chooses them."""
        integers, multipliers, scale = grouped_weight(weight, by_input=by_input)
        packed, by_group = pack_int4(integers.numpy()), multipliers.numpy()
        if whole and device == "cpu":
            packed, by_group = tiled(packed), tiled_multipliers(by_group, packed.shape[1])
        arrays = arrays_of(scale, bias, integers.shape[1], packed=packed, multipliers=by_group)
        return cls(arrays, by_input, device)

    @classmethod
    def n_active(cls, rows: Tensor) -> int:
        """Codes that are not 0."""
        return int(np.count_nonzero(quantize_rows(rows.contiguous().numpy())[0]))

    def _numbers(self) -> Tensor:
        by_group = untiled_multipliers(self.arrays["multipliers"], self._outputs)
        multipliers = torch.tensor(by_group).repeat_interleave(INT4_GROUP, dim=1)
        integers = torch.from_numpy(unpack_int4(untiled(self.arrays["packed"], self._outputs), self._columns))
        return integers.float() * multipliers[:, : self._columns]


def grouped_weight(weight: Tensor, *, by_input: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    r"""Integers, multipliers of groups and scales of a weight: :math:`w_{jk} \approx s_j a_{jg} q_{jk}`.

    Each group of 32 inputs is rounded to steps of an eighth of its largest weight, which becomes -8; the step itself is
    rounded up to a multiple a, from -127 to 127, of the scale of its output. With ``by_input`` a
    group holds 32 outputs of an input, and shares its scale with the groups of the same outputs. The range of
    multipliers is smaller for more than 16,643 inputs, so that sums fit in 32 bits.

    Parameters
    ----------
    weight : Tensor of shape (outputs, inputs)
        Finite numbers.
    by_input : bool
        Whether groups hold outputs of an input.

    Returns
    -------
    integers : Tensor of shape (rows, columns), int8
        From -8 to 7; rows are outputs or, ``by_input``, inputs.
    multipliers : Tensor of shape (rows, groups), int8
    scale : Tensor of shape (outputs,), float32

    Examples
    --------
    >>> integers, multipliers, scale = grouped_weight(torch.tensor([[8.0, -3.0, 1.2], [0.5, 1.0, 0.0]]))
    >>> integers.tolist(), multipliers.tolist(), (scale * 127).tolist()
    ([[-8, 3, -1], [-4, -8, 0]], [[-127], [-127]], [1.0, 0.125])
    """
    numbers = weight.detach().float()
    rows = (numbers.t() if by_input else numbers).contiguous()
    count, columns = rows.shape
    groups = -(-columns // INT4_GROUP)
    padded = torch.nn.functional.pad(rows, (0, groups * INT4_GROUP - columns)).view(count, groups, INT4_GROUP)
    least, largest = padded.aminmax(dim=2)
    steps = torch.where(largest > -least, largest, least) / -8
    most = min(LARGEST_MULTIPLIER, (2**31 - 1) // (8 * LARGEST_MULTIPLIER * weight.shape[1]))
    unit = (steps.abs().amax(dim=0 if by_input else 1, keepdim=True) / most).clamp_(min=SMALLEST_STEP)
    multipliers = (steps.abs() / unit).ceil_().clamp_(max=most).copysign_(steps)
    inverse = torch.where(multipliers == 0, 0.0, 1 / (multipliers * unit))
    integers = (padded * inverse[:, :, None]).round_().clamp_(-8, 7).to(torch.int8)
    scale = unit.view(-1).repeat_interleave(INT4_GROUP)[:columns] if by_input else unit.view(-1)
    return integers.view(count, -1)[:, :columns].contiguous(), multipliers.to(torch.int8), scale.contiguous()
