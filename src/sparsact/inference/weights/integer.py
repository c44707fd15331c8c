"""What integer forms of a weight have in common: arrays with scales, and inputs that are scaled first."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.inference.weights.form import WeightForm
from sparsact.kernels.int4_linear import Int4Linear
from sparsact.kernels.int8_linear import Int8Linear

Arrays = dict[str, NDArray[Any]]


class IntegerWeights(WeightForm):
    """The integers and scales of a weight: what multiplies them are the codes of inputs, quantised row by row.

    An input whose code is that of 0 adds exactly nothing, so leaving its weights out changes no bit. ``arrays`` holds
    all of them, by name; memory that is mapped from a file is used as it is.
    """

    rounded = True
    counted = False

    def __init__(self, arrays: Arrays, by_input: bool, device: str = "cpu") -> None:
        self.arrays, self.by_input, self.device = arrays, by_input, device
        self._outputs, self._columns = len(arrays["scale"]), int(arrays["columns"].item())
        found = arrays.get("smoothing")
        self.scales = None if found is None else torch.tensor(found)  # that inputs are multiplied by
        self._product = self._product_of(arrays)
        self._whole = self._product.columns if by_input else self._product.rows
        self.kernel = self._whole if found is None else None  # for float32

    @abstractmethod
    def _product_of(self, arrays: Arrays) -> Int8Linear | Int4Linear:
        """The product with these integers."""

    @classmethod
    @abstractmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> IntegerWeights:
        """The integers of a layer's float weight."""

    @classmethod
    def smoothed(
        cls,
        weight: Tensor,
        bias: Tensor | None,
        *,
        scales: Tensor,
        by_input: bool = False,
        whole: bool = False,
        device: str = "cpu",
    ) -> IntegerWeights:
        """The integers of a weight whose columns are divided by scales (inputs,), by which inputs are multiplied."""
        found = cls.of(weight.detach().cpu().float() / scales, bias, by_input=by_input, whole=whole, device=device)
        return cls(found.arrays | {"smoothing": scales.numpy()}, by_input, device)

    @classmethod
    @abstractmethod
    def n_active(cls, rows: Tensor) -> int:
        """How many numbers of float32 inputs, each row quantised on its own, have another code than 0."""

    @abstractmethod
    def _numbers(self) -> Tensor:
        """The numbers that the integers and their multipliers stand for, by rows as they are held, without scales."""

    def dequantized(self) -> Tensor:
        """The numbers (outputs, inputs) that the integers stand for, float32."""
        rows = self._numbers()
        weight = (rows.t() if self.by_input else rows) * torch.tensor(self.arrays["scale"])[:, None]
        return weight if self.scales is None else weight * self.scales

    def all(self, x: Tensor, m: int) -> Tensor:
        """All outputs; if weights are stored by input, only inputs whose code is not that of 0 are read."""
        if self.device != "cpu":
            return self._by_triton(self._scaled(x).reshape(m, -1)).to(x.dtype)
        return self._computed(x, m, self._whole)

    def columns(self, x: Tensor, m: int, share: float) -> Tensor:
        """:meth:`all`, whatever the share of active inputs."""
        return self.all(x, m)

    def rows(self, x: Tensor, active: Tensor, m: int, share: float) -> Tensor:
        """As in :class:`WeightForm`, on the CPU."""
        return self._computed(x, m, self._product.rows_at, active.data_ptr())

    def _computed(self, x: Tensor, m: int, kernel: Callable[..., Any], *mask: int) -> Tensor:
        scaled = self._scaled(x)
        numbers = scaled if scaled.dtype is torch.float32 else scaled.float()
        out = numbers.new_empty(m, self._outputs)
        kernel(numbers.data_ptr(), *mask, m, out.data_ptr(), torch.get_num_threads())
        return out if x.dtype is torch.float32 else out.to(x.dtype)

    def _scaled(self, x: Tensor) -> Tensor:
        return x if self.scales is None else x.float() * self.scales.to(x.device)

    def _by_triton(self, x: Tensor) -> Tensor:
        """The same outputs (m, outputs) of inputs (m, inputs) on a GPU."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.arrays, self.by_input, self.device)


def arrays_of(scale: Tensor, bias: Tensor | None, columns: int, **integers: NDArray[Any]) -> Arrays:
    """The arrays that every form holds, and the integers of this one."""
    added = torch.zeros_like(scale) if bias is None else bias.detach().cpu().float().clone()
    return {"scale": scale.numpy(), "bias": added.numpy(), "columns": np.array([columns]), **integers}
