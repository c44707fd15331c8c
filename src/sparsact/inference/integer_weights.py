"""Integer copies of a layer's weight: int8 with one scale per output, int4 in groups of 32."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact.inference.products import contiguous, triton_product
from sparsact.kernels.int4_linear import (
    INT4_GROUP,
    LARGEST_MULTIPLIER,
    Int4Linear,
    pack_int4,
    quantize_rows,
    unpack_int4,
)
from sparsact.kernels.int8_linear import Int8Linear, quantize_inputs

Arrays = dict[str, NDArray[Any]]
MAX_ROWS: Final = 16  # of a call whose up-projections are computed only where their gates are on
SMALLEST_SCALE: Final = float(np.finfo(np.float32).eps)  # of weights, in torch's observers
SMALLEST_STEP: Final = float(np.finfo(np.float32).tiny)  # of int4 weights: its reciprocal is finite


class IntegerWeights(ABC):
    """The integers and scales of a weight (outputs, inputs), by rows of outputs or, ``by_input``, by rows of inputs.

    ``arrays`` holds all of them, by name; memory that is mapped from a file is used as it is.
    """

    _product: Int8Linear | Int4Linear

    def __init__(self, arrays: Arrays, by_input: bool) -> None:
        self.arrays, self._by_input, self._outputs = arrays, by_input, len(arrays["scale"])
        self._columns = int(arrays["columns"].item())
        found = arrays.get("smoothing")
        self.scales = None if found is None else torch.tensor(found)  # that inputs are multiplied by

    @classmethod
    @abstractmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False) -> IntegerWeights:
        """The integers of a layer's float weight."""

    @classmethod
    def smoothed(cls, weight: Tensor, bias: Tensor | None, *, scales: Tensor, by_input: bool = False) -> IntegerWeights:
        """The integers of a weight whose columns are divided by scales (inputs,), by which inputs are multiplied."""
        found = cls.of(weight.detach().cpu().float() / scales, bias, by_input=by_input)
        return cls(found.arrays | {"smoothing": scales.numpy()}, by_input)

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
        weight = (rows.t() if self._by_input else rows) * torch.tensor(self.arrays["scale"])[:, None]
        return weight if self.scales is None else weight * self.scales

    @property
    def kernel(self) -> Callable[[int, int, int, int], Any]:
        """Fills outputs from inputs, float32, by their addresses: of (inputs, rows, outputs, threads)."""
        return self._product.columns if self._by_input else self._product.rows

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads at most."""
        return self._product.nbytes

    def __call__(self, x: Tensor, mask: Tensor | None = None, device: str = "cpu") -> Tensor:
        """Outputs (..., outputs) for inputs (..., inputs), which are on a device of that type.

        With a mask (..., outputs) of bytes only its outputs, and 0 elsewhere; not for weights by rows of inputs.
        """
        product, dtype, sizes = self._product, x.dtype, [*x.shape]
        if self.scales is not None:
            x = x.float() * self.scales.to(x.device)
        if device != "cpu":
            out = self._by_triton(x.reshape(-1, sizes[-1]), device)
            return out.view(*sizes[:-1], self._outputs).to(dtype)
        numbers = contiguous(x if dtype is torch.float32 else x.float())
        m, threads = numbers.numel() // sizes[-1], torch.get_num_threads()
        sizes[-1] = self._outputs
        out = numbers.new_empty(sizes)
        if mask is None or self._by_input:
            self.kernel(numbers.data_ptr(), m, out.data_ptr(), threads)
        else:
            product.rows_at(numbers.data_ptr(), mask.contiguous().data_ptr(), m, out.data_ptr(), threads)
        return out if dtype is torch.float32 else out.to(dtype)

    def _by_triton(self, x: Tensor, device: str) -> Tensor:
        """The same outputs (m, outputs) of inputs (m, inputs) on a GPU."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.arrays, self._by_input)


class Int8Weights(IntegerWeights):
    """Int8 weights with one scale per output: outputs of a row are those of torch's dynamically quantised layers."""

    def __init__(self, arrays: Arrays, by_input: bool) -> None:
        super().__init__(arrays, by_input)
        self._product = Int8Linear(arrays["integers"], arrays["scale"], arrays["bias"], self._columns)
        self._on_device: Any = None

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False) -> Int8Weights:  # noqa: D102
        integers, scale = quantized_weight(weight)
        rows = (integers.t() if by_input else integers).contiguous().numpy()
        filled = Int8Linear(rows, scale.numpy()).filled
        return cls(_arrays(scale, bias, rows.shape[1], integers=filled), by_input)

    @classmethod
    def n_active(cls, rows: Tensor) -> int:  # noqa: D102
        codes, _, zero_point = quantize_inputs(contiguous(rows).numpy())
        return int(np.count_nonzero(codes != zero_point[:, None]))

    def _numbers(self) -> Tensor:
        return torch.tensor(self.arrays["integers"][:, : self._columns]).float()

    def _by_triton(self, x: Tensor, device: str) -> Tensor:
        if self._on_device is None:
            scale, bias = (torch.tensor(self.arrays[name], device=x.device) for name in ("scale", "bias"))
            rows = torch.tensor(self.arrays["integers"][:, : self._columns], device=x.device)
            values = rows if self._by_input else rows.t().contiguous()
            self._on_device = triton_product(device, "int8_product", values=values, scale=scale, bias=bias)
        return self._on_device(x, gather=self._by_input)  # type: ignore[no-any-return]


class Int4Weights(IntegerWeights):
    """Int4 weights in groups of 32 inputs of an output or, ``by_input``, of 32 outputs of an input."""

    def __init__(self, arrays: Arrays, by_input: bool) -> None:
        super().__init__(arrays, by_input)
        scale, bias = arrays["scale"], arrays["bias"]
        self._product = Int4Linear(arrays["packed"], arrays["multipliers"], scale, bias, self._columns)

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False) -> Int4Weights:  # noqa: D102
        integers, multipliers, scale = grouped_weight(weight, by_input=by_input)
        packed = pack_int4(integers.numpy())
        arrays = _arrays(scale, bias, integers.shape[1], packed=packed, multipliers=multipliers.numpy())
        return cls(arrays, by_input)

    @classmethod
    def n_active(cls, rows: Tensor) -> int:  # noqa: D102
        return int(np.count_nonzero(quantize_rows(contiguous(rows).numpy())[0]))

    def _numbers(self) -> Tensor:
        multipliers = torch.tensor(self.arrays["multipliers"]).repeat_interleave(INT4_GROUP, dim=1)
        integers = torch.from_numpy(unpack_int4(self.arrays["packed"], self._columns))
        return integers.float() * multipliers[:, : self._columns]


KINDS: Final[dict[str, type[IntegerWeights]]] = {"int8": Int8Weights, "int4": Int4Weights}


def _arrays(scale: Tensor, bias: Tensor | None, columns: int, **integers: NDArray[Any]) -> Arrays:
    added = torch.zeros_like(scale) if bias is None else bias.detach().cpu().float().clone()
    return {"scale": scale.numpy(), "bias": added.numpy(), "columns": np.array([columns]), **integers}


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


def grouped_weight(weight: Tensor, *, by_input: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    r"""Integers, multipliers of groups and scales of a weight: :math:`w_{jk} \approx s_j a_{jg} q_{jk}`.

    Each group of 32 inputs is rounded to steps of an eighth of its largest weight, which becomes -8; the step itself is
    rounded up to a multiple a, from -127 to 127, of the scale of its output. ``by_input``, groups are of 32 outputs of
    an input, and share their scale with the groups of the same outputs.

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

    Notes
    -----
    The range of multipliers is smaller for more than 16,643 inputs, so that sums fit in 32 bits.

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
