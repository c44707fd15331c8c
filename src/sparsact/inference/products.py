"""Products of a layer that read only the rows of active units, on the memory of torch's tensors.

``DEVICES`` says what runs on which type of device: on the CPU kernels that take addresses, on CUDA those of
:mod:`sparsact.inference.triton`, which never make the host wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import isfinite
from operator import attrgetter
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.extras import install
from sparsact.inference.certified_screen import Screen
from sparsact.kernels.neurons import ActiveDot, SparseProduct

DTYPES: Final = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
MAX_ROWS_ON_GPU: Final = 16


@dataclass(frozen=True)
class Device:
    """What runs on one type of device: dtypes that kernels take, methods of ``sparsify``, kinds of integer weights.

    ``holds`` says whether a tensor lies there.
    """

    holds: Callable[[Tensor], bool]
    dtypes: tuple[torch.dtype, ...]
    methods: tuple[str, ...]
    integers: tuple[str, ...]


_CUDA: Final = "is_cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "is_cuda"  # where Triton's kernels run
DEVICES: Final = {
    "cpu": Device(attrgetter("is_cpu"), DTYPES, ("exact", "certified", "threshold", "top_k"), ("int8", "int4")),
    "cuda": Device(attrgetter(_CUDA), (torch.float32, torch.bfloat16, torch.float16), ("exact",), ("int8",)),
}


def device_type(weight: Tensor) -> str:
    """The key of ``DEVICES`` for a layer with this weight: ``"cpu"`` for devices without kernels."""
    return weight.device.type if weight.device.type in DEVICES else "cpu"


def device_obstacle(weights: Sequence[Tensor], device: str) -> str:
    """Why kernels cannot read weights that should be on this type of device; empty if they can."""
    places = ", ".join(sorted({str(weight.device) for weight in weights}))
    if not all(map(DEVICES[device].holds, weights)):
        return f"its weights are on {places}, kernels run on the CPU or on CUDA: move the model"
    if device == "cuda" and find_spec("triton") is None:
        return f"its weights are on {places}, where kernels need Triton: {install('gpu')}"
    return ""


def triton_product(device: str, name: str, **weights: Tensor | None) -> Callable[..., Tensor] | None:
    """On CUDA Triton's product of that name with weights that calls share, copied if need be; None on the CPU."""
    if device != "cuda":
        return None
    from sparsact.inference import triton

    given = {key: None if weight is None else weight.contiguous() for key, weight in weights.items()}
    return partial(getattr(triton, name), **given)


class RowProduct:
    """:math:`H W^T + b` of inputs H that are mostly 0, from a copy of W with one row per unit.

    W is (outputs, units), b (outputs,) or None. ``finite`` says whether all weights are: otherwise 0 times a weight may
    not be 0, and cannot be left out.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, device: str = "cpu") -> None:
        self._outputs, self._units = weight.shape
        self.finite = _finite(weight)
        self._on_gpu = triton_product(device, "sparse_product", values=weight.t(), bias=bias)
        self.kernel: Any = None
        if self._on_gpu is None:
            product = SparseProduct(_transposed_copy(weight), None if bias is None else _array(bias))
            self.kernel = product.at

    def __call__(self, h: Tensor, rows: int, share: float) -> Tensor | None:
        """The product (rows, outputs) of contiguous inputs, or None if more than ``share`` of them are not 0.

        On a GPU, where the host does not know how many, None for more than 16 rows.
        """
        if self._on_gpu is not None:
            return self._on_gpu(h.view(rows, -1), together=True) if rows <= MAX_ROWS_ON_GPU else None
        out = h.new_empty(rows, self._outputs)
        most = int(share * self._units * rows)
        entries = self.kernel(h.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most)
        return out if entries <= most else None


class ActiveProduct:
    """:math:`X W^T + b` of the units that a mask names, and 0 of the others.

    W is (units, inputs), read in place, b (units,) or None. ``finite`` says whether both are.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, device: str = "cpu") -> None:
        self._units = len(weight)
        self.finite = _finite(weight) and (bias is None or _finite(bias))
        self._on_gpu = triton_product(device, "active_dot", weight=weight, bias=bias)
        if self._on_gpu is None:
            product = ActiveDot(_array(weight), None if bias is None else _array(bias))
            self._at_mask, self.at_screen = product.at_mask, product.at_screen

    def gated(self, x: Tensor, mask: Tensor, rows: int, share: float) -> Tensor | None:
        """The product of any inputs where a gate is on; None also if 0 times what is left out may not be 0."""
        x = contiguous(x)
        if self._on_gpu is not None:
            few = self.finite and rows <= MAX_ROWS_ON_GPU
            return self._on_gpu(x.view(rows, -1), mask=mask.view(rows, -1), gate=True) if few else None
        return self(x, mask, rows, share) if self.finite and isfinite(x.sum()) else None

    def __call__(self, x: Tensor, mask: Tensor, rows: int, share: float) -> Tensor | None:
        """The product (m, units) of contiguous inputs (m, d) and mask of one byte; None as for :class:`RowProduct`."""
        out = x.new_empty(rows, self._units)
        most = int(share * self._units * rows)
        entries = self._at_mask(x.data_ptr(), mask.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most)
        return out if entries <= most else None

    def screened(self, x: Tensor, screen: Screen, rows: int, share: float) -> Tensor | None:
        """The product at the units that a screen does not prove off, in one call."""
        out = x.new_empty(rows, self._units)
        most = int(share * self._units * rows)
        entries = self.at_screen(screen.kernel, x.data_ptr(), rows, out.data_ptr(), torch.get_num_threads(), most)
        return out if entries <= most else None


def contiguous(x: Tensor) -> Tensor:
    """The tensor with its rows one after another; quicker than torch where they are."""
    return x if x.is_contiguous() else x.contiguous()


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
