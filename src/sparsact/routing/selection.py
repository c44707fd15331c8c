"""What a router answers: which units an input switches on, and with which weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsact.routing.namespace import namespace

EMPTY = -1


@dataclass(frozen=True)
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
        rows = xp.broadcast_to(xp.arange(m, device=_device(self.weights))[:, None], (m, k))
        whole = xp.zeros((m, self.width + 1), dtype=self.weights.dtype, device=_device(self.weights))
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
        offsets = xp.arange(size, dtype=self.indices.dtype, device=_device(self.indices))
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


def _device(array: Any) -> Any:
    return getattr(array, "device", None)
