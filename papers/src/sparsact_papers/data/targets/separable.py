"""Sums of products of functions of one coordinate each."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.data.targets.target import row_blocks

Factors = Callable[[NDArray[np.float64]], NDArray[Any]]  # (m,) numbers -> (m, r) values of r functions


def separable_sum(X: NDArray[np.float64], factors: Factors, table: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Real part of :math:`\sum_{i_1, \dots, i_n} T_{i_1 \dots i_n} \prod_j \phi_{i_j}(x_j)` at each row.

    For each row the products over the first half of the coordinates are formed, and those over the second; between them
    stands the table as a matrix. A row needs vectors of about ``sqrt(table.size)`` numbers, never one of
    ``table.size``.

    Parameters
    ----------
    X : ndarray of shape (m, n)
    factors : callable
        The functions :math:`\phi`, the same for each coordinate.
    table : ndarray of shape (r,) * n
    """
    half = table.ndim // 2
    rows, columns = prod(table.shape[:half]), prod(table.shape[half:])
    matrix = table.reshape(rows, columns)
    values = np.empty(len(X))
    for block in row_blocks(len(X), 2 * (rows + 2 * columns)):
        left, right = (_products(part, factors) for part in np.split(X[block], [half], axis=1))
        values[block] = np.einsum("ij,ij->i", left @ matrix, right).real
    return values


def _products(X: NDArray[np.float64], factors: Factors) -> NDArray[Any]:
    """All products of one function of each column, shape (m, r**columns): the last column's index runs fastest."""
    products: NDArray[Any] = np.ones((len(X), 1))
    for column in X.T:
        products = (products[:, :, None] * factors(column)[:, None, :]).reshape(len(X), -1)
    return products
