"""What a router answers: which units an input switches on, and with which weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsact.routing.namespace import namespace

EMPTY = -1


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Units that each of m inputs switches on, at most k of ``width`` for each.

    Every array is of the kind that the router was given: NumPy or torch, on the same device.

    Attributes
    ----------
    indices : (m, k) int64
        Units, in increasing order or the router's own; ``EMPTY`` (-1) where a place is not taken.
    weights : (m, k) float
        What each unit is multiplied by: 1 for a mask, a probability for a gate, 0 where a place is not taken.
    logits : (m, ...) float or None
        The scores that the choice was made by, where there are any.
    auxiliary_loss : scalar of the kind of ``weights``
        What training should add to the loss, not yet scaled; 0 for most routers.
    counts : (width,) int64
        Inputs that each unit was chosen for, before any were dropped.
    dropped : (m,) bool
        Inputs that lost a unit because its capacity was full.
    """

    indices: Any
    weights: Any
    logits: Any
    auxiliary_loss: Any
    counts: Any
    dropped: Any

    @classmethod
    def mask(cls, indices: Any, width: int, *, dtype: Any, logits: Any = None) -> Selection:
        """The choice with weight 1, of type ``dtype``, for every unit in ``indices`` (m, k); nothing is dropped."""
        xp = namespace(indices)
        return cls(
            indices,
            xp.astype(indices != EMPTY, dtype),
            logits,
            xp.zeros((), dtype=dtype, device=indices.device),
            chosen_counts(indices, width),
            xp.zeros((indices.shape[0],), dtype=xp.bool, device=indices.device),
        )

    @property
    def width(self) -> int:
        """Number of units."""
        return int(self.counts.shape[0])

    def dense(self) -> Any:
        """Weights as an (m, width) array, 0 for units that are off: the mask of Section 2.1 of the paper."""
        xp = namespace(self.weights)
        m, k = self.indices.shape
        # Places not taken go to a column past the last, which is then cut off; no unit is chosen twice for an input.
        column = xp.where(self.indices == EMPTY, self.width, self.indices)
        rows = xp.broadcast_to(xp.arange(m, device=self.weights.device)[:, None], (m, k))
        whole = xp.zeros((m, self.width + 1), dtype=self.weights.dtype, device=self.weights.device)
        if xp.__name__.endswith("torch"):
            return whole.index_put((rows, column), self.weights)[:, : self.width]
        whole[rows, column] = self.weights
        return whole[:, : self.width]

    def expand(self, size: int) -> Selection:
        """The same choice where unit u stands for ``size`` neighbours: u * size, ..., u * size + size - 1.

        An expert of a Switch transformer is such a block of hidden units.
        """
        xp = namespace(self.weights)
        m, k = self.indices.shape
        offsets = xp.arange(size, dtype=self.indices.dtype, device=self.indices.device)
        units = self.indices[:, :, None] * size + offsets
        units = xp.where(self.indices[:, :, None] == EMPTY, EMPTY, units)
        return Selection(
            xp.reshape(units, (m, k * size)),
            xp.reshape(xp.broadcast_to(self.weights[:, :, None], (m, k, size)), (m, k * size)),
            self.logits,
            self.auxiliary_loss,
            xp.reshape(xp.broadcast_to(self.counts[:, None], (self.width, size)), (self.width * size,)),
            self.dropped,
        )

    def __repr__(self) -> str:
        m, k = self.indices.shape
        return f"<Selection of at most {k} of {self.width} units for each of {m} inputs>"


def chosen_counts(indices: Any, width: int) -> Any:
    """How often each of ``width`` units stands in ``indices`` (m, k), (width,) int64."""
    if isinstance(indices, np.ndarray):
        return np.bincount(indices[indices != EMPTY], minlength=width)
    xp = namespace(indices)
    units = xp.where(indices == EMPTY, width, indices).reshape(-1)
    ones = xp.ones_like(units)
    return xp.zeros((width + 1,), dtype=xp.int64, device=indices.device).index_add(0, units, ones)[:width]
