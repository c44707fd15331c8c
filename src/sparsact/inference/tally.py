"""What is counted of a block's activations while a model runs. Its size does not depend on the number of inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsact.inference.apply import Applicability

WINDOWS = (4, 16, 64)
LEVELS = (0.0, *(10 ** (k / 10) for k in range(-40, 11)))  # of a row's root mean square
AT_ONCE = 1 << 22  # activations whose magnitudes are counted in one step


class ActivationCounter:
    r"""Counts of the active units of one block, over rows (a token or a point each).

    Parameters
    ----------
    name : str
        The block, for errors.
    n_units : int

    Attributes
    ----------
    rows_by_active : Tensor of shape (n_units + 1,), int64
        How many rows had 0, 1, ..., n_units active units.
    active_rows : Tensor of shape (n_units,), int64
        In how many rows each unit was active.
    windows, union_active : dict of int to int
        By number w of consecutive rows: how many groups of w, and the units active somewhere in a group, summed.
    within : Tensor of shape (len(LEVELS) + 1,), int64
        How many activations lay above one level and at most at the next, as multiples of their row's root mean square.
    squares : Tensor of shape (len(LEVELS) + 1,), float64
        The sum of the squares of these multiples.
    calls, few : int
        How often rows came, and how often so few, with so few units active, that exact methods apply by default.
    least_rows, most_rows : int
        Rows of a call.
    """

    def __init__(self, name: str, n_units: int) -> None:
        self.name, self.n_units = name, n_units
        self.rows_by_active = torch.zeros(n_units + 1, dtype=torch.int64)
        self.active_rows = torch.zeros(n_units, dtype=torch.int64)
        self.windows = dict.fromkeys(WINDOWS, 0)
        self.union_active = dict.fromkeys(WINDOWS, 0)
        self.within = torch.zeros(len(LEVELS) + 1, dtype=torch.int64)
        self.squares = torch.zeros(len(LEVELS) + 1, dtype=torch.float64)
        self.calls = self.few = self.least_rows = self.most_rows = 0

    @property
    def n_rows(self) -> int:
        """Rows seen."""
        return int(self.rows_by_active.sum())

    def add(self, activation: Tensor) -> None:
        """Count an activation of shape (..., time, n_units) or (n_units,): rows along ``time`` are consecutive.

        Raises
        ------
        ValueError
            If a number is NaN or infinite: it is neither active nor zero.
        """
        if not activation.numel():
            return
        if not torch.isfinite(activation).all():
            wrong = int((~torch.isfinite(activation)).sum())
            raise ValueError(
                f"the activations of block {self.name!r} must be finite to be counted; {wrong:,} of "
                f"{activation.numel():,} are NaN or infinite: look for such weights or inputs."
            )
        sequences = activation.detach()
        time = sequences.shape[-2] if sequences.ndim > 1 else 1
        sequences = sequences.reshape(-1, time, self.n_units)
        active = sequences != 0
        self._count(active)
        self._count_call(active.flatten(0, 1))
        for rows in torch.split(sequences.flatten(0, 1), max(1, AT_ONCE // self.n_units)):
            self._magnitudes(rows)

    def _count(self, active: Tensor) -> None:
        """Count booleans of shape (sequences, time, n_units)."""
        n_active = active.sum(-1).flatten()
        self.rows_by_active += torch.bincount(n_active, minlength=self.n_units + 1).cpu()
        self.active_rows += active.sum((0, 1)).cpu()
        for width in WINDOWS:
            whole = active.shape[1] // width
            groups = active[:, : whole * width].reshape(len(active), whole, width, self.n_units)
            self.windows[width] += whole * len(active)
            self.union_active[width] += int(groups.any(2).sum())

    def _count_call(self, active: Tensor) -> None:
        """Count booleans of shape (rows, n_units) as one call."""
        rows, limits = len(active), Applicability()
        self.least_rows = min(self.least_rows or rows, rows)
        self.most_rows = max(self.most_rows, rows)
        self.calls += 1
        self.few += rows <= limits.max_rows and int(active.any(0).sum()) <= int(limits.max_share * self.n_units)

    def _magnitudes(self, rows: Tensor) -> None:
        """Count how large activations of shape (rows, n_units) are against their row's root mean square."""
        size = rows.abs().to(torch.promote_types(rows.dtype, torch.float32))
        largest = size.amax(-1, keepdim=True)
        size = size / largest.where(largest > 0, 1)  # so that no square overflows; 0 stays 0
        scale = size.square().mean(-1, keepdim=True).sqrt()
        multiple = (size / scale.where(scale > 0, 1)).flatten()
        place = torch.bucketize(multiple, torch.tensor(LEVELS, dtype=size.dtype, device=size.device))
        length = len(LEVELS) + 1
        self.within += torch.bincount(place, minlength=length).cpu()
        self.squares += torch.bincount(place, multiple.square().double(), minlength=length).cpu()
