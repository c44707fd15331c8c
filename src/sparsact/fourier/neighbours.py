"""How much a function changes from a point to its neighbours: by calling it, or as a network's structure tells.

The neighbours of x are the points with one coordinate flipped, or with a random few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.checks import checked_reals
from sparsact.network import SparselyActivatedNetwork

Function = Callable[[NDArray[np.float64]], Any]
Changes = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]

FEW_FLIPS = 1 / 32
"""Share of flipped coordinates below which updating a pre-activation beats computing it anew: a product of dense
matrices takes less than a tenth of the time of one with a sparse factor, for each multiplication done."""


def values_of(f: Function, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of a function at the rows of ``X``, checked: finite, one a row."""
    shown = X.view()
    shown.setflags(write=False)  # a function that changes its argument would change the sample
    values = checked_reals(f(shown), "values of the function")
    if values.shape != (len(X),):
        raise ValueError(f"the function must return one value a row, shape ({len(X)},); it returned {values.shape}.")
    return values


def quarter_squares(f: Function, X: NDArray[np.float64], flipped: NDArray[np.intp], rows: int) -> NDArray[np.float64]:
    """Quarter squares of f(x) - f(x^i) for the coordinates ``flipped`` (m, r) of every point, shape (m, r)."""
    values = values_of(f, X)
    point, coordinate = np.repeat(np.arange(len(X)), flipped.shape[1]), flipped.ravel()
    squares = np.empty(len(point))
    for start in range(0, len(point), rows):
        block = slice(start, start + rows)
        Y = X[point[block]]
        Y[np.arange(len(Y)), coordinate[block]] *= -1
        squares[block] = ((values[point[block]] - values_of(f, Y)) / 2) ** 2
    return squares.reshape(flipped.shape)


def changes(f: Function, share: float) -> Changes:
    """The function of points (m, n) and of what is flipped, (m, n), that returns f(x) - f(y), (m,).

    ``share`` is what part of the coordinates is flipped on average.
    """
    if isinstance(f, SparselyActivatedNetwork) and not isinstance(f.W, sp.csr_array) and share < FEW_FLIPS:
        return _updated(f)
    return lambda X, flipped: values_of(f, X) - values_of(f, np.where(flipped, -X, X))


def _updated(net: SparselyActivatedNetwork) -> Changes:
    """Changes of a network with dense weights, from those columns of weights whose coordinate is flipped."""
    columns = np.ascontiguousarray(net.W.T)

    def changes(X: NDArray[np.float64], flipped: NDArray[np.bool_]) -> NDArray[np.float64]:
        before = net.preactivations(X)
        after = before - sp.csr_array(np.where(flipped, 2 * X, 0)) @ columns
        return np.asarray((np.maximum(before, 0) - np.maximum(after, 0)) @ net.u)

    return changes
