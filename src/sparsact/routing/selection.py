"""Result of a router: the units that an input switches on, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from sparsact.routing.array_functions import Array, integers, is_readable, namespace

EMPTY: Final = -1


@dataclass(frozen=True, eq=False)
class Selection:
    """Units chosen for each of m inputs, at most k of ``n_units`` for each.

    All arrays are NumPy or torch, as the router's input is, on the same device.

    Attributes
    ----------
    indices : (m, k) int64
        Numbers of the units, in increasing order; ``EMPTY`` (-1) for an empty place.
    weights : (m, k) float
        Factor of each unit: 1 for a mask, a probability for a gate, 0 for an empty place.
    logits : (m, ...) float or None
        The scores on which the choice is based, if any.
    auxiliary_loss : scalar of the kind of ``weights``
        Term for the training loss, not yet scaled; 0 for most routers.
    counts : (n_units,) int64
        Number of inputs that chose each unit, before any was dropped.
    dropped : (m,) bool
        Whether a full unit dropped the input.
    real : (m,) bool or None
        False for padding; None where there is none.
    is_partial : bool
        Whether a place is left empty by choice, as where experts choose their inputs, and not because no unit was free.
    length : int or None
        Inputs of a sequence, within which some losses take their means; None for all of them.

    Examples
    --------
    >>> selection = Selection.of(np.array([[0, 2], [2, EMPTY]]), np.array([[1.0, 1.0], [1.0, 0.0]]), 3)
    >>> selection.counts, selection.dense()
    (array([1, 0, 2]), array([[1., 0., 1.],
           [0., 0., 1.]]))
    """

    indices: Any
    weights: Any
    logits: Any
    auxiliary_loss: Any
    counts: Any
    dropped: Any
    real: Any = None
    is_partial: bool = False
    length: int | None = None

    def __post_init__(self) -> None:
        """Raise unless there is one weight for each index: kernels would read past the smaller array."""
        if self.weights.shape != self.indices.shape or self.indices.ndim != 2:
            need = tuple(self.indices.shape)
            fact = f"`weights` has shape {tuple(self.weights.shape)} and `indices` {need}; both must be (m, k)"
            raise ValueError(f"{fact}: pass one weight for each index, such as weights.expand{need}.")

    @classmethod
    def of(
        cls, indices: Array, weights: Array, n_units: int, *, logits: Array | None = None, **others: Any
    ) -> Selection:
        """A selection whose counts follow from its indices; without auxiliary loss and drops, unless given."""
        xp = namespace(weights)
        device = weights.device
        plain = {
            "auxiliary_loss": xp.zeros((), dtype=weights.dtype, device=device),
            "counts": counts_of(indices, n_units),
            "dropped": xp.zeros((indices.shape[0],), dtype=xp.bool, device=device),
        }
        return cls(indices, weights, logits, **{**plain, **others})

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.counts.shape[0])

    def dense(self) -> Any:
        """Weights as an (m, n_units) array, 0 for units that are off: the mask of Section 2.1 of the paper."""
        xp = namespace(self.weights)
        m = self.indices.shape[0]
        # Places not taken add 0 to the first column; no unit is chosen twice for an input.
        empty = self.indices == EMPTY
        column, weights = xp.where(empty, 0, self.indices), xp.where(empty, xp.zeros_like(self.weights), self.weights)
        whole = xp.zeros((m, self.n_units), dtype=self.weights.dtype, device=self.weights.device)
        if isinstance(whole, np.ndarray):
            np.add.at(whole, (np.arange(m)[:, None], column), weights)
            return whole
        return whole.scatter_add(1, column, weights)

    def masked(self, real: Array) -> Selection:
        """The same choice without the inputs where ``real`` (m,) is False: they switch nothing on and count nowhere."""
        xp = namespace(self.weights)
        taken = real[:, None] & (self.indices != EMPTY)
        chosen = xp.where(real[:, None], self.indices, EMPTY)
        return replace(
            self,
            indices=chosen,
            weights=xp.where(taken, self.weights, 0),
            counts=counts_of(chosen, self.n_units),
            dropped=self.dropped & real,
            real=real,
        )

    def expand(self, size: int) -> Selection:
        """The same choice where unit u stands for ``size`` neighbours: u * size, ..., u * size + size - 1.

        An expert of a Switch transformer is such a block of hidden units.
        """
        xp = namespace(self.weights)
        m, k = self.indices.shape
        units = self.indices[:, :, None] * size + integers(size, self.indices)
        units = xp.where(self.indices[:, :, None] == EMPTY, EMPTY, units)
        return replace(
            self,
            indices=xp.reshape(units, (m, k * size)),
            weights=xp.reshape(xp.broadcast_to(self.weights[:, :, None], (m, k, size)), (m, k * size)),
            counts=xp.reshape(xp.broadcast_to(self.counts[:, None], (self.n_units, size)), (self.n_units * size,)),
        )


def counts_of(indices: Array, n_units: int) -> Any:
    """Inputs (n_units,) for which each unit was chosen; IndexError where there is no such unit, if that can be seen."""
    xp = namespace(indices)
    flat = xp.reshape(indices, (-1,))
    if not is_readable(flat):
        counts = flat.new_zeros(n_units + 1)
        return counts.scatter_add(0, flat.where(flat != EMPTY, n_units), flat.new_ones(flat.shape))[:n_units]
    if len(flat) and not (flat.min() >= EMPTY and flat.max() < n_units):
        raise IndexError(
            f"a selection must name units in range({n_units}), or {EMPTY}; got {int(flat.min())} to {int(flat.max())}."
        )
    return xp.bincount(flat[flat != EMPTY], minlength=n_units)
