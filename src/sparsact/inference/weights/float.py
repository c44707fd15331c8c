"""Float weights: outputs of a mask from rows read in place, outputs of sparse inputs from a copy with a row per input.

On the CPU kernels take addresses; on CUDA the kernels of :mod:`sparsact.inference.triton` never make the host wait.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.inference.certified_screen import Screen
from sparsact.inference.weights.form import WeightForm, triton_product
from sparsact.kernels.neurons import ActiveDot, SparseProduct

MAX_ROWS_ON_GPU: Final = 16  # the host does not know how many units are active, and many rows need most of them


class FloatWeights(WeightForm):
    """A float weight, whose dense product is the layer's own.

    ``finite`` says whether all numbers are: otherwise 0 times a weight may not be 0, and cannot be left out.
    """

    rounded = False
    counted = True

    def __init__(self, weight: Tensor, bias: Tensor | None, by_input: bool, device: str) -> None:
        self._outputs, self._inputs = weight.shape
        self.finite = _finite(weight) and (by_input or bias is None or _finite(bias))
        self.kernel = None
        self._on_gpu: Callable[..., Tensor] | None = None
        if device != "cpu" and by_input:
            self._on_gpu = triton_product("sparse_product", values=weight.t(), bias=bias)
        elif device != "cpu":
            self._on_gpu = triton_product("active_dot", weight=weight, bias=bias)
        if self._on_gpu is not None:
            return
        added = None if bias is None else as_array(bias)
        if by_input:
            self.kernel = self._at_inputs = SparseProduct(_transposed_copy(weight), added).at
        else:
            product = ActiveDot(as_array(weight), added)
            self._at_mask, self.at_screen = product.at_mask, product.at_screen

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> FloatWeights:
        """The weight as it is, or a transposed copy."""
        return cls(weight, bias, by_input, device)

    def columns(self, x: Tensor, m: int, share: float) -> Tensor | None:
        """As in :class:`WeightForm`; on a GPU None for more than 16 rows."""
        if not self.finite:
            return None
        if self._on_gpu is not None:
            return self._on_gpu(x.view(m, -1), together=True) if m <= MAX_ROWS_ON_GPU else None
        return self._few(x, m, share * self._inputs, self._at_inputs, x.data_ptr())

    def rows(self, x: Tensor, active: Tensor, m: int, share: float) -> Tensor | None:
        """As in :class:`WeightForm`; None also where inputs are not finite."""
        if not self.finite:
            return None
        if self._on_gpu is not None:
            return self._on_gpu(x.view(m, -1), mask=active.view(m, -1), gate=True) if m <= MAX_ROWS_ON_GPU else None
        if not isfinite(x.sum()):
            return None
        return self._few(x, m, share * self._outputs, self._at_mask, x.data_ptr(), active.data_ptr())

    def screened(self, x: Tensor, screen: Screen, m: int, share: float) -> Tensor | None:
        """The outputs that a screen does not prove off, and 0 elsewhere, in one call."""
        return self._few(x, m, share * self._outputs, self.at_screen, screen.kernel, x.data_ptr())

    def _few(self, x: Tensor, m: int, most: float, kernel: Callable[..., int], *given: object) -> Tensor | None:
        """What a kernel computes, or None if it would read more than ``most`` entries a row."""
        out, limit = x.new_empty(m, self._outputs), int(most * m)
        entries = kernel(*given, m, out.data_ptr(), torch.get_num_threads(), limit)
        return out if entries <= limit else None


def _finite(numbers: Tensor) -> bool:
    """Whether all numbers are finite: an infinity is the maximum or the minimum, a NaN is both."""
    return all(bool(end.isfinite()) for end in numbers.aminmax()) if numbers.numel() else True


def _transposed_copy(weight: Tensor) -> NDArray[Any]:
    """A copy with a row per input. NumPy asks the system for large pages, in which scattered rows are found faster."""
    transposed = weight.t()
    bits = transposed.view(torch.uint16) if weight.dtype == torch.bfloat16 else transposed
    return np.ascontiguousarray(bits.numpy())


def as_array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's memory as the kernels take it: bfloat16 as uint16; a copy where it is not contiguous."""
    flat = tensor.contiguous()
    array: NDArray[Any] = (flat.view(torch.uint16) if flat.dtype == torch.bfloat16 else flat).numpy()
    return array
