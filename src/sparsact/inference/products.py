"""Products of a layer that read only the rows of active units, on the memory of torch's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.kernels.neurons import ActiveDot, SparseProduct

DTYPES = (torch.float32, torch.bfloat16, torch.float64)


class RowProduct:
    """:math:`H W^T + b` of inputs H of which most numbers are 0, from a copy of W with one row a unit.

    Parameters
    ----------
    weight : Tensor of shape (outputs, units)
        W; the copy takes as much memory again.
    bias : Tensor of shape (outputs,) or None

    Attributes
    ----------
    finite : bool
        Whether all weights are: else 0 times one of them is not 0, and leaving it out shows.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._outputs, self._units = weight.shape
        self.finite = _finite(weight)
        self._product = SparseProduct(_turned(weight), None if bias is None else _array(bias))

    def __call__(self, h: Tensor, rows: int, share: float) -> Tensor | None:
        """The product (rows, outputs) of contiguous inputs, or None if more than ``share`` of the units are active."""
        out = h.new_empty(rows, self._outputs)
        most = int(share * self._units)
        found = self._product.at(h.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most)
        return out if found <= most else None


class ActiveProduct:
    """:math:`X W^T + b` of the units that a mask names, and 0 of the others.

    Parameters
    ----------
    weight : Tensor of shape (units, inputs)
        W, which is read where it lies.
    bias : Tensor of shape (units,) or None

    Attributes
    ----------
    finite : bool
        Whether weights and bias are.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._units = len(weight)
        self.finite = _finite(weight) and (bias is None or _finite(bias))
        self._product = ActiveDot(_array(weight), None if bias is None else _array(bias))

    def __call__(self, x: Tensor, mask: Tensor, share: float) -> Tensor | None:
        """The product (m, units) of contiguous inputs (m, d) and mask of one byte; None as of :class:`RowProduct`."""
        out = x.new_empty(len(x), self._units)
        most = int(share * self._units)
        found = self._product.at_mask(
            x.data_ptr(), mask.data_ptr(), len(x), out.data_ptr(), torch.get_num_threads(), most
        )
        return out if found <= most else None


def _finite(numbers: Tensor) -> bool:
    """Whether all are: an infinity is the largest or the least, and what is no number is both."""
    return all(bool(end.isfinite()) for end in numbers.aminmax()) if numbers.numel() else True


def _turned(weight: Tensor) -> NDArray[Any]:
    """A copy with one row a unit. NumPy asks the system for large pages, which scattered rows are found in quicker."""
    across = weight.t()
    return np.ascontiguousarray((across.view(torch.uint16) if weight.dtype == torch.bfloat16 else across).numpy())


def _array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's memory as the kernels take it: bfloat16 as uint16; a copy where it is not contiguous."""
    flat = tensor.contiguous()
    array: NDArray[Any] = (flat.view(torch.uint16) if flat.dtype == torch.bfloat16 else flat).numpy()
    return array
