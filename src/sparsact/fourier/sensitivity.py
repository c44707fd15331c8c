r"""Sensitivity of a function, from its table of values and by definition: no Fourier coefficient is computed.

:math:`x^{\oplus i}` is :math:`x` with coordinate :math:`i` flipped. The factor 1/4 makes the sensitivity of a function
with values +-1 the number of flips that change its value. :class:`~sparsact.fourier.Spectrum` gives the same averages
from coefficients; that the two agree is tested.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_table


def sensitivity(values: ArrayLike) -> NDArray[np.float64]:
    r"""Sensitivity :math:`\mathrm{sen}_f(x) = \frac14 \sum_i (f(x) - f(x^{\oplus i}))^2` at every point.

    ``n * 2**n`` operations. Follows Section 2.1 of [A]_.

    Parameters
    ----------
    values : array-like of shape (2**n,)
        Value at every point, in table order.

    Returns
    -------
    sensitivity : ndarray of shape (2**n,)
        In table order.

    Examples
    --------
    The AND of two bits (-1 is true) changes only near its one true point:

    >>> sensitivity([1, 1, 1, -1])
    array([0., 1., 1., 2.])
    """
    table = checked_table(values)
    total = np.zeros_like(table)
    for i, squares in enumerate(_quarter_squares(table)):
        total.reshape(-1, 2, 2**i)[...] += squares[:, None]
    return total


def average_sensitivity(values: ArrayLike) -> float:
    r"""Average sensitivity :math:`\mathrm{AS}(f) = \mathbb{E}_x[\mathrm{sen}_f(x)]` from a table of values.

    Parameters
    ----------
    values : array-like of shape (2**n,)
        Value at every point, in table order.

    Returns
    -------
    sensitivity : float
        The sum of all influences.

    Examples
    --------
    Every flip changes the parity of three bits:

    >>> average_sensitivity([1, -1, -1, 1, -1, 1, 1, -1])
    3.0
    """
    return float(influences(values).sum())


def influences(values: ArrayLike) -> NDArray[np.float64]:
    r"""Influence :math:`\mathbb{E}_x \frac14 (f(x) - f(x^{\oplus i}))^2` of every coordinate, shape (n,).

    For a function with values +-1, the probability :math:`\Pr[f(x) \ne f(x^{\oplus i})]`.

    Parameters
    ----------
    values : array-like of shape (2**n,)
        Value at every point, in table order.

    Returns
    -------
    influences : ndarray of shape (n,), float64
        One a coordinate.

    Examples
    --------
    >>> influences([1, 1, 1, -1])
    array([0.5, 0.5])
    """
    return np.array([squares.mean() for squares in _quarter_squares(checked_table(values))])


def _quarter_squares(table: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """For every coordinate i, the quarter squares of all pairs (x, x^i), shape (2**(n - 1 - i), 2**i)."""
    for i in range(table.size.bit_length() - 1):
        pairs = table.reshape(-1, 2, 2**i)
        half_difference = (pairs[:, 0] - pairs[:, 1]) / 2
        yield half_difference * half_difference
