r"""The k largest outputs of a linear layer, computed exactly from the few rows that bounds leave in doubt.

An int8 copy of the weights gives an upper bound U and a lower bound L of every output. The k-th largest L is a floor:
only outputs with U at or above it can be among the k largest, and these alone are computed from the weights themselves.

The bounds hold for outputs as they are rounded, in any order of summation (:mod:`sparsact.inference.certified_screen`
has the proof): every unit that a dense layer puts among its k largest is among the units computed, whatever library
multiplies. Values equal the dense layer's up to the order of summation, and so are indices wherever values differ
by more than that.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from sparsact.inference.certified_screen import NARROW, Screen
from sparsact.inference.compiled import is_being_traced
from sparsact.inference.int8_copy import ROUND_UP
from sparsact.inference.weight_cache import WeightCache, WeightVersion
from sparsact.inference.weights.float import as_array
from sparsact.kernels.largest import largest_outputs
from sparsact.kernels.screen import MAX_INPUTS, SLACK, Widening
from sparsact.validation.parameters import checked_size

SMALLEST_REST: Final = 2.0**-8  # of a row's norm; R is no less: about half of what int8 leaves out

ROWS_AT_ONCE: Final = 256  # inputs whose digits stay in the second cache while rows of the copy pass by


class TopOutputs(NamedTuple):
    """The largest outputs of each input, in decreasing order, and their places.

    Examples
    --------
    >>> import torch
    >>> CertifiedTopK(torch.eye(3)).top_k(torch.tensor([3.0, 1.0, 2.0]), 1).indices
    tensor([0])
    """

    values: Tensor
    indices: Tensor


class CertifiedTopK:
    """``torch.topk(F.linear(x, weight, bias), k)``, from a quarter of the bytes of float32 weights.

    Parameters
    ----------
    weight : Tensor of shape (s, d)
        float32, bfloat16 or float16; held, not copied. New weights in its place are found as
        :func:`~sparsact.inference.sparsify` finds them.
    bias : Tensor of shape (s,), optional
    sample : Tensor of shape (n, d), optional
        A few hundred typical inputs, which make the bounds tighter. The bounds hold for all inputs.

    Raises
    ------
    TypeError
        If ``weight`` is wider than float32.
    ValueError
        If shapes or dtypes disagree, or d is 0 or exceeds 65,536.

    Notes
    -----
    Equal outputs come in order of their index; torch promises no order for them. Calls with gradients, on other
    devices, under torch's tracing, and rows that are not finite or whose outputs may overflow are computed densely.

    Examples
    --------
    >>> import torch
    >>> top = CertifiedTopK(torch.eye(4), torch.tensor([0.0, 0.0, -9.0, 0.0]))
    >>> top.top_k(torch.tensor([[1.0, 3.0, 8.0, 2.0]]), 2)
    TopOutputs(values=tensor([[3., 2.]]), indices=tensor([[1, 3]]))
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, sample: Tensor | None = None) -> None:
        if weight.dtype not in NARROW or weight.ndim != 2 or not 1 <= weight.shape[1] <= MAX_INPUTS:
            Screen.of(weight)  # raises what is wrong
        if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != weight.dtype):
            raise ValueError(
                f"`bias` must have shape ({len(weight)},) in {weight.dtype}, as `weight`; got {tuple(bias.shape)}, "
                f"{bias.dtype}."
            )
        self.weight, self.bias = _counted(weight), None if bias is None else _counted(bias)
        self.sample = sample
        self._outputs: WeightCache[BoundedOutputs] = WeightCache(partial(BoundedOutputs, sample=sample))
        self._version = WeightVersion(self._tensors)
        if weight.is_cpu:
            self._outputs.get(self._version)

    def top_k(self, x: Tensor, k: int) -> TopOutputs:
        """Values (..., k) and indices (..., k) of the k largest outputs for inputs x (..., d).

        Raises
        ------
        ValueError
            If there are fewer than k outputs, or x has another number of inputs or another dtype than the weights.
        """
        s, d = self.weight.shape
        k = checked_size(k, "`k`", 0, s)
        if x.ndim < 1 or x.shape[-1] != d or x.dtype != self.weight.dtype:
            raise ValueError(
                f"inputs must have shape (..., {d}) in {self.weight.dtype}, as the weights; got {tuple(x.shape)}, "
                f"{x.dtype}."
            )
        if k and x.numel() and self._applies(x):
            rows = x.reshape(-1, d).contiguous()
            found = self._current().top_k(rows, k)
            unknown = found.indices[:, 0] < 0
            if bool(unknown.any()):
                found.values[unknown], found.indices[unknown] = self._dense(rows[unknown], k)
            return TopOutputs(*(one.view(*x.shape[:-1], k) for one in found))
        return TopOutputs(*self._dense(x, k))

    def _dense(self, x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        values, indices = torch.topk(F.linear(x, self.weight, self.bias), k)
        return values, indices

    def _applies(self, x: Tensor) -> bool:
        """Whether an input is plain numbers on the CPU, and no gradient is recorded."""
        held = [one for one in (x, *self._tensors) if one is not None]
        recorded = torch.is_grad_enabled() and any(one.requires_grad for one in held)
        plain = type(x) is Tensor and not x.is_nested and all(one.is_cpu for one in held)
        return plain and x.layout is torch.strided and not recorded and not is_being_traced()

    def _current(self) -> BoundedOutputs:
        if not self._version.is_current(self._tensors):
            self._version = WeightVersion(self._tensors)
        return self._outputs.get(self._version)

    @property
    def _tensors(self) -> tuple[Tensor, Tensor | None]:
        return self.weight, self.bias

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and files hold the numbers, not the kernel, which holds addresses."""
        return CertifiedTopK, (self.weight, self.bias, self.sample)


class BoundedOutputs:
    """Weights on the CPU with the screen that bounds their outputs; the caller checks inputs.

    ``screen`` is taken in place of one that is computed, for the same weights.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None, sample: Tensor | None = None, screen: Screen | None = None
    ) -> None:
        if screen is None:
            made = Screen.of(weight, bias, sample=sample)
            screen = replace(made, R=torch.maximum(made.R, ROUND_UP * SMALLEST_REST * norms(made)))
        self.screen = screen
        added = None if bias is None else as_array(bias)
        self.kernel = largest_outputs(screen.kernel, as_array(weight), added, widening(screen, weight, bias))

    def top_k(self, x: Tensor, k: int) -> TopOutputs:
        """The k largest outputs of contiguous rows x (m, d); the first index is -1 where nothing is known of a row."""
        values, indices = x.new_empty(len(x), k), torch.empty(len(x), k, dtype=torch.int64)
        for begin in range(0, len(x), ROWS_AT_ONCE):
            some, into, places = (one[begin : begin + ROWS_AT_ONCE] for one in (x, values, indices))
            addresses = some.data_ptr(), len(some), k, into.data_ptr(), places.data_ptr()
            self.kernel.top_k(*addresses, torch.get_num_threads())
        return TopOutputs(values, indices)

    def fill(self, x: Tensor, rows: int, k: int) -> Tensor | None:
        """Outputs (rows, s) that may be among the k largest, -infinity elsewhere; None if nothing is known of a row."""
        out = x.new_empty(rows, len(self.screen.a))
        unknown = self.kernel.fill(x.data_ptr(), rows, k, out.data_ptr(), torch.get_num_threads())
        return None if unknown else out


def norms(screen: Screen) -> Tensor:
    """Upper bounds of the norms of a screen's rows, times its column scales."""
    return screen.Q + screen.R + 2 * screen.along.double().abs().sum(1)  # directions have norm 2 at most


def widening(screen: Screen, weight: Tensor, bias: Tensor | None) -> Widening:
    """Bounds on the rounding errors of outputs."""
    number, d = torch.finfo(weight.dtype), weight.shape[1]
    gamma = 1.1 * (d + 2) * 2.0**-24
    # Products and sums may be flushed to zero where they are not normal.
    least = 2 * (d + 3) * torch.finfo(torch.float32).tiny + number.tiny
    sizes = norms(screen)
    largest = _largest(sizes)
    fits = bias is None or _largest(bias.abs()) <= number.max / 4
    limit = (number.max / 4 / largest if largest else torch.inf) if fits else -1.0
    return Widening(gamma / SMALLEST_REST, SLACK + gamma + number.eps, least, limit)


def _largest(sizes: Tensor) -> float:
    """The largest finite number, 0 if there is none."""
    finite = sizes[sizes.isfinite()]
    return float(finite.max()) if len(finite) else 0.0


def _counted(tensor: Tensor) -> Tensor:
    """The tensor, or a copy of one that was made in inference mode, which counts no writes."""
    if not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        return tensor.clone()
