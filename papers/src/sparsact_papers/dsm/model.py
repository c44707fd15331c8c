"""The Data-Dependent Sparse Model itself: g(x) = (A o mask(x)) phi(x)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.routing import EMPTY, Selection
from sparsact.validation.arrays import checked_reals

Array = NDArray[np.float64]
Units = NDArray[np.int64]


@dataclass(frozen=True)
class DSM:
    r"""A function :math:`g(x) = (A \circ \mathrm{mask}(x))\, \phi(x)` of the class DSM(d, s, t) (Section 2.1 of [B]_).

    Attributes
    ----------
    n_inputs : int
        Columns of x, d.
    features : callable
        :math:`\phi`: ``features(X, units)`` is the value of unit ``units[i, j]`` at row i, (m, k). It may assume that
        units are in range; where a place is ``EMPTY`` its value is not used.
    route : callable
        ``route(X)`` is a :class:`~sparsact.routing.Selection`: the mask, as places, with a weight at each.
    A : ndarray of shape (t, outputs)
        The trained weights.

    Notes
    -----
    The paper's mask is 0 or 1. Weights other than 1 (the probability of a Switch gate) are a part of phi in its terms.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Sections 2.1 and 3.

    Examples
    --------
    The mean of the two points nearest to a query, as a mask and a matrix:

    >>> from sparsact_papers.dsm import from_nearest
    >>> g = from_nearest([[0.0], [1.0], [5.0]], [2.0, 4.0, 30.0], k=2)
    >>> g.width, g.mask([[0.4]]), g.A[:, 0], g([[0.4]])
    (3, array([[1., 1., 0.]]), array([ 1.,  2., 15.]), array([[3.]]))
    """

    n_inputs: int
    features: Callable[[Array, Units], Array]
    route: Callable[[Array], Selection]
    A: Array

    @property
    def width(self) -> int:
        """Number of units, t."""
        return len(self.A)

    def __call__(self, X: ArrayLike) -> Array:
        """Values (m, outputs) at rows (m, d), from the active units alone."""
        rows = self._rows(X)
        selection = self.route(rows)
        units = np.where(selection.indices == EMPTY, 0, selection.indices)
        phi = self.features(rows, units) * selection.weights
        return np.asarray(np.einsum("mk,mko->mo", np.where(selection.indices == EMPTY, 0.0, phi), self.A[units]))

    def mask(self, X: ArrayLike) -> Array:
        """The mask (m, t): the weight of each unit, 0 where it is off."""
        return np.asarray(self.route(self._rows(X)).dense())

    def n_active(self, X: ArrayLike) -> NDArray[np.int64]:
        """Active units (m,) at each row; the most of them is the paper's s."""
        return np.asarray((self.route(self._rows(X)).indices != EMPTY).sum(axis=1))

    def hidden(self, X: ArrayLike) -> Array:
        r"""The masked features :math:`\mathrm{mask}(x) \circ \phi(x)`, (m, t): what a next layer sees."""
        rows = self._rows(X)
        every = np.broadcast_to(np.arange(self.width), (len(rows), self.width))
        return np.asarray(self.mask(rows) * self.features(rows, every))

    def dense(self, X: ArrayLike) -> Array:
        """Values by the definition, with all t features of every row: the check on :meth:`__call__`."""
        return np.asarray(self.hidden(X) @ self.A)

    def _rows(self, X: ArrayLike) -> Array:
        rows = checked_reals(X, "`X`")
        if rows.ndim != 2 or rows.shape[1] != self.n_inputs:
            raise ValueError(f"`X` must have one row an input and {self.n_inputs} columns; got shape {rows.shape}.")
        return np.ascontiguousarray(rows)


def stack(first: DSM, second: DSM) -> DSM:
    r"""Two layers, :math:`(A_2 \circ \mathrm{mask}_2)\, \phi_2(\mathrm{mask}_1(x) \circ \phi_1(x))`: Section 2.1.

    The mask and the features of the second layer see the masked features of the first, one column for each unit of the
    first. The first layer's own A is not used: it is part of :math:`\phi_2`.

    Parameters
    ----------
    first, second : DSM
        The lower and the upper layer.

    Returns
    -------
    g : DSM

    Examples
    --------
    The first layer's one active unit is its nearest point, 1 or 5; the second looks up what to say of it:

    >>> from sparsact_papers.dsm import from_nearest
    >>> first = from_nearest([[1.0], [5.0]], [0.0, 0.0], k=1)
    >>> second = from_nearest([[1.0, 0.0], [0.0, 1.0]], [10.0, 20.0], k=1)
    >>> stack(first, second)([[0.0], [7.0]])[:, 0]
    array([10., 20.])
    """
    if second.n_inputs != first.width:
        raise ValueError(
            f"the second layer sees {second.n_inputs} columns and the first has {first.width} units; "
            "make it on as many columns."
        )
    return DSM(
        first.n_inputs,
        lambda X, units: second.features(first.hidden(X), units),
        lambda X: second.route(first.hidden(X)),
        second.A,
    )
