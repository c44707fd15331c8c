"""A certified screen: proves units to be off before their weights are read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from sparsact.inference.int8_weights import column_scales, main_directions, sketch
from sparsact.kernels.screen import MAX_INPUTS, screen

NARROW = (torch.float32, torch.bfloat16, torch.float16)
KERNEL_DTYPES = NARROW[:2]


@dataclass(frozen=True, eq=False)
class Screen:
    """For each input, proves most of the units that are off to be off; decision record 20 has the proof.

    Attributes
    ----------
    rows : Tensor of shape (s, width), uint8
        The int8 copy, q + 128; ``width`` is d or slightly more.
    a, Q, R : Tensor of shape (s,), float64
        Scale, and bounds of norms, of each unit.
    along : Tensor of shape (s, k), float32
        Coefficients G.
    offset : Tensor of shape (s,), float64
        b - t.
    columns : Tensor of shape (d,), float64
        c.
    directions : Tensor of shape (k, d), float32
        M.
    leak : float
        delta.

    Examples
    --------
    >>> import torch
    >>> from sparsact.inference.certified_screen import Screen
    >>> screen = Screen.of(torch.eye(3), torch.tensor([0.0, -1.0, -3.0]))
    >>> screen.survivors(torch.tensor([[2.0, 2.0, 2.0]]))
    tensor([[ True,  True, False]])
    """

    rows: Tensor
    a: Tensor
    Q: Tensor
    R: Tensor
    along: Tensor
    offset: Tensor
    columns: Tensor
    directions: Tensor
    leak: float

    @classmethod
    def of(
        cls, weight: Tensor, bias: Tensor | None = None, threshold: Tensor | None = None, sample: Tensor | None = None
    ) -> Screen:
        """The screen of a layer.

        Parameters
        ----------
        weight : Tensor of shape (s, d)
            float32, bfloat16 or float16.
        bias : Tensor of shape (s,), optional
        threshold : Tensor of shape (s,), optional
            t; by default 0, that of ReLU.
        sample : Tensor of shape (n, d), optional
            Some hundred typical inputs of the layer, which make the bounds tighter. They hold for all inputs.

        Raises
        ------
        TypeError
            If ``weight`` is wider than float32.
        ValueError
            If shapes disagree, ``sample`` has no finite row, or d is 0 or exceeds 65,536.
        """
        if weight.dtype not in NARROW:
            raise TypeError(
                f"`weight` must be float32, bfloat16 or float16, which the bounds cover; got {weight.dtype}."
            )
        if weight.ndim != 2 or not 1 <= weight.shape[1] <= MAX_INPUTS:
            raise ValueError(f"`weight` must have shape (s, d) with 1 <= d <= {MAX_INPUTS}; got {tuple(weight.shape)}.")
        weight = weight.detach().cpu()
        s, d = weight.shape
        columns, directions = torch.ones(d, dtype=torch.float64), torch.empty(0, d)
        if sample is not None:
            points = _points(sample, d)
            columns = column_scales(weight, points)
            directions = main_directions(points, columns)
        made = sketch(weight, columns, directions)
        offset = _per_unit(bias, s, "bias") - _per_unit(threshold, s, "threshold")
        return cls(made.rows, made.a, made.Q, made.R, made.along, offset, columns, directions, made.leak)

    def survivors(self, x: Tensor) -> Tensor:
        """Units that are not proved off, (m, s), bool, for inputs x (m, d) in float32, bfloat16 or float16."""
        return self.active(self._checked(x)).view(torch.bool)

    def active(self, x: Tensor) -> Tensor:
        """:meth:`survivors` as bytes, for contiguous inputs of a dtype that the kernel takes, which are not checked."""
        rows = len(x)
        found = torch.empty(rows, len(self.a), dtype=torch.uint8)
        counts = self._counts if rows <= len(self._counts) else torch.empty(rows, dtype=torch.int64)
        self._kernel.survivors(
            x.data_ptr(), x.dtype is torch.bfloat16, rows, found.data_ptr(), counts.data_ptr(), torch.get_num_threads()
        )
        return found

    def upper_bounds(self, x: Tensor) -> Tensor:
        """Upper bounds of pre-activations minus thresholds, (m, s), float64; NaN where nothing is known."""
        x = self._checked(x)
        bounds = torch.empty(len(x), len(self.a), dtype=torch.float64)
        self._kernel.bounds(x.data_ptr(), x.dtype is torch.bfloat16, len(x), bounds.data_ptr(), torch.get_num_threads())
        return bounds

    def estimates(self, x: Tensor) -> Tensor:
        """Pre-activations minus thresholds from the copy alone, (m, s), float32: an estimate without guarantee."""
        x = self._checked(x)
        estimates = torch.empty(len(x), len(self.a), dtype=torch.float32)
        self._kernel.estimates(
            x.data_ptr(), x.dtype is torch.bfloat16, len(x), estimates.data_ptr(), torch.get_num_threads()
        )
        return estimates

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the screen holds."""
        return sum(part.nbytes for part in self._parts() if isinstance(part, Tensor))

    @cached_property
    def _counts(self) -> Tensor:
        """Buffer for counts that the kernel writes and nobody reads."""
        return torch.empty(16, dtype=torch.int64)

    @cached_property
    def _kernel(self) -> Any:
        rows, a, Q, R, offset = (part.numpy() for part in (self.rows, self.a, self.Q, self.R, self.offset))
        along, columns, directions = self.along.numpy(), (1 / self.columns).numpy(), self.directions.numpy()
        return screen(rows, a, Q, R, offset, along, columns, directions, self.leak)

    def _checked(self, x: Tensor) -> Tensor:
        """Inputs as the kernel takes them."""
        d = len(self.columns)
        if x.ndim != 2 or x.shape[1] != d or x.dtype not in NARROW:
            raise ValueError(
                f"inputs must have shape (m, {d}) in float32, bfloat16 or float16; got {tuple(x.shape)}, {x.dtype}."
            )
        if x.dtype not in KERNEL_DTYPES:
            x = x.float()
        return x.detach().contiguous()

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and files hold the numbers, not the kernel, which holds addresses."""
        return Screen, self._parts()


def _points(sample: Tensor, d: int) -> Tensor:
    """The finite rows of a sample, in float64."""
    points = sample.detach().cpu().reshape(-1, d).double()
    points = points[points.isfinite().all(1)]
    if not len(points):
        raise ValueError(f"`sample` must hold finite inputs of {d} numbers; of {len(sample)} none is finite.")
    return points


def _per_unit(values: Tensor | None, s: int, name: str) -> Tensor:
    if values is None:
        return torch.zeros(s, dtype=torch.float64)
    if values.shape != (s,):
        raise ValueError(f"`{name}` must have shape ({s},), a number a unit; got {tuple(values.shape)}.")
    return values.detach().cpu().double()
