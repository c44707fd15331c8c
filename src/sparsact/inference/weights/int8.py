"""Int8 weights with one scale per output; outputs equal torch's dynamically quantised layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.inference.weights.form import triton_product
from sparsact.inference.weights.integer import Arrays, IntegerWeights, arrays_of
from sparsact.kernels.int8_linear import Int8Linear, quantize_inputs, tiled, untiled

SMALLEST_SCALE: Final = float(np.finfo(np.float32).eps)  # of weights, in torch's observers


class Int8Weights(IntegerWeights):
    """Int8 weights with one scale per output: outputs of a row equal torch's dynamically quantised layers."""

    _on_gpu: Callable[..., Tensor] | None = None

    def _product_of(self, arrays: Arrays) -> Int8Linear:
        return Int8Linear(arrays["integers"], arrays["scale"], arrays["bias"], self._columns)

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False, whole: bool = False, device: str = "cpu"
    ) -> Int8Weights:
        """Integers and scales as :func:`quantized_weight` chooses them."""
        integers, scale = quantized_weight(weight)
        rows = (integers.t() if by_input else integers).contiguous().numpy()
        filled = Int8Linear(rows, scale.numpy()).filled
        if whole and device == "cpu":
            filled = tiled(filled)
        return cls(arrays_of(scale, bias, rows.shape[1], integers=filled), by_input, device)

    @classmethod
    def n_active(cls, rows: Tensor) -> int:
        """Codes other than the row's zero point."""
        codes, _, zero_point = quantize_inputs(rows.contiguous().numpy())
        return int(np.count_nonzero(codes != zero_point[:, None]))

    def _numbers(self) -> Tensor:
        return torch.tensor(self._integers()).float()

    def _integers(self) -> NDArray[np.int8]:
        rows: NDArray[np.int8] = untiled(self.arrays["integers"], self._outputs)
        return rows[:, : self._columns]

    def _by_triton(self, x: Tensor) -> Tensor:
        if self._on_gpu is None:
            scale, bias = (torch.tensor(self.arrays[name], device=x.device) for name in ("scale", "bias"))
            rows = torch.tensor(self._integers(), device=x.device)
            values = rows if self.by_input else rows.t().contiguous()
            self._on_gpu = triton_product("int8_product", values=values, scale=scale, bias=bias)
        return self._on_gpu(x, gather=self.by_input)


def quantized_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""Integers :math:`q_{jk}` and scales :math:`s_j` of a weight, as torch's symmetric observers choose them.

    .. math:: s_j = \max_k |w_{jk}| \,/\, 127.5, \qquad q_{jk} = \mathrm{clip}(\mathrm{rint}(w_{jk} / s_j), -128, 127).

    Parameters
    ----------
    weight : Tensor of shape (outputs, inputs)
        Finite numbers.

    Returns
    -------
    integers : Tensor of shape (outputs, inputs), int8
    scale : Tensor of shape (outputs,), float32

    Examples
    --------
    >>> integers, scale = quantized_weight(torch.tensor([[1.0, -2.0, 255.0]]))
    >>> integers.tolist(), scale.item()
    ([[0, -1, 127]], 2.0)
    """
    numbers = weight.detach().cpu().float()
    scale = (numbers.abs().amax(dim=1) / 127.5).clamp_(min=SMALLEST_SCALE)
    integers = (numbers * scale.reciprocal()[:, None]).round_().clamp_(-128, 127).to(torch.int8)
    return integers, scale
