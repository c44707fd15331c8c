"""Products of a layer that read only the rows of active units, on the memory of torch's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.inference.certified_screen import Screen
from sparsact.kernels.neurons import ActiveDot, SparseProduct

DTYPES = (torch.float32, torch.bfloat16, torch.float64)


class RowProduct:
    """:math:`H W^T + b` of inputs H that are mostly 0, from a copy of W with one row per unit.

    W is (outputs, units), b (outputs,) or None. ``finite`` says whether all weights are: otherwise 0 times a weight may
    not be 0, and cannot be left out.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._outputs, self._units = weight.shape
        self.finite = _finite(weight)
        self._product = SparseProduct(_transposed_copy(weight), None if bias is None else _array(bias))

    def __call__(self, h: Tensor, rows: int, share: float) -> Tensor | None:
        """The product (rows, outputs) of contiguous inputs, or None if more than ``share`` of them are not 0."""
        out = h.new_empty(rows, self._outputs)
        most = int(share * self._units * rows)
        entries = self._product.at(h.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most)
        return out if entries <= most else None


class ActiveProduct:
    """:math:`X W^T + b` of the units that a mask names, and 0 of the others.

    W is (units, inputs), read in place, b (units,) or None. ``finite`` says whether both are.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._units = len(weight)
        self.finite = _finite(weight) and (bias is None or _finite(bias))
        self._product = ActiveDot(_array(weight), None if bias is None else _array(bias))

    def __call__(self, x: Tensor, mask: Tensor, rows: int, share: float) -> Tensor | None:
        """The product (m, units) of contiguous inputs (m, d) and mask of one byte; None as for :class:`RowProduct`."""
        out = x.new_empty(rows, self._units)
        most = int(share * self._units * rows)
        entries = self._product.at_mask(
            x.data_ptr(), mask.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most
        )
        return out if entries <= most else None

    def screened(self, x: Tensor, screen: Screen, rows: int, share: float) -> Tensor | None:
        """The product at the units that a screen does not prove off, in one call."""
        out = x.new_empty(rows, self._units)
        most = int(share * self._units * rows)
        entries = self._product.at_screen(
            screen.kernel, x.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most
        )
        return out if entries <= most else None


def _finite(numbers: Tensor) -> bool:
    """Whether all numbers are finite: an infinity is the maximum or the minimum, a NaN is both."""
    return all(bool(end.isfinite()) for end in numbers.aminmax()) if numbers.numel() else True


def _transposed_copy(weight: Tensor) -> NDArray[Any]:
    """A copy with one row per unit. NumPy asks the system for large pages, in which scattered rows are found faster."""
    transposed = weight.t()
    bits = transposed.view(torch.uint16) if weight.dtype == torch.bfloat16 else transposed
    return np.ascontiguousarray(bits.numpy())


def _array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's memory as the kernels take it: bfloat16 as uint16; a copy where it is not contiguous."""
    flat = tensor.contiguous()
    array: NDArray[Any] = (flat.view(torch.uint16) if flat.dtype == torch.bfloat16 else flat).numpy()
    return array
