"""Random functions of the hypercube's corners, interpolated inside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.validation.arrays import checked_table
from sparsact.validation.parameters import checked_generator, checked_size
from sparsact_papers.data.targets.separable import separable_sum
from sparsact_papers.data.targets.target import Target

MOST_COLUMNS = 26  # a table of 2**26 float64 numbers is half a gigabyte


@dataclass(frozen=True, eq=False, repr=False)
class Multilinear(Target):
    r"""The multilinear interpolation of a table of values at the corners of the cube.

    .. math:: f(x) = \sum_{y \in \{-1, 1\}^n} v_y \prod_i \frac{1 + y_i x_i}{2} = \sum_S \hat v(S) \prod_{i \in S} x_i

    At a corner it is the table's value exactly; its coefficients are the table's Fourier coefficients.

    Parameters
    ----------
    table : array-like of shape (2**n,)
        Value at each corner, in table order (see :mod:`sparsact.hypercube`).

    Notes
    -----
    About ``2 * 2**n`` operations a point, in one matrix product.

    *The Lipschitz constant is exact on the cube.* The derivative in :math:`x_i` is the mean of
    :math:`D_i v(y) = (v_{y, y_i = 1} - v_{y, y_i = -1}) / 2` over independent signs y of mean x. By Jensen's inequality
    :math:`\|\nabla f(x)\|^2 \le \mathbb{E}_y \sum_i D_i v(y)^2 \le \max_y \sum_i D_i v(y)^2`, and at the corner that
    attains the maximum the gradient is :math:`D v(y)` itself. For signs it is the square root of the largest
    sensitivity, :math:`\sqrt{n}` at most.

    *Outside of it*, within [-r, r]^n with r > 1, :math:`|\partial_i f| \le \sum_{S \ni i} |\hat v(S)| r^{|S| - 1}`.

    Examples
    --------
    The parity of two bits is the product of the coordinates:

    >>> Multilinear([1, -1, -1, 1])([[0.5, 0.5], [-1, 0.25]])
    array([ 0.25, -0.25])
    """

    table: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", checked_table(self.table).copy())

    @property
    def n(self) -> int:
        """Number of columns."""
        return self.table.size.bit_length() - 1

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        # Axis 0 of the reshaped table is its highest bit, hence the last coordinate.
        return separable_sum(X[:, ::-1], _corner_weights, self.table.reshape((2,) * self.n))

    def _steepness(self, radius: float) -> float:
        cube = self.table.reshape((2,) * self.n)
        if radius <= 1:
            squares = sum((np.diff(cube, axis=i) / 2) ** 2 for i in range(self.n))
            return float(np.sqrt(np.max(squares)))
        coefficients = np.abs(walsh_hadamard(self.table)).reshape(cube.shape)
        slopes = [_within(np.take(coefficients, 1, axis=i), radius) for i in range(self.n)]
        return float(np.linalg.norm(slopes))

    def __repr__(self) -> str:
        return f"Multilinear(n={self.n})"


def random_hypercube(n: int, *, rng: np.random.Generator) -> Multilinear:
    """The random hypercube function of paper B: signs at the corners by fair coins, interpolated.

    Parameters
    ----------
    n : int
        Number of columns, 1 to 26.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    target : Multilinear
        With its Lipschitz bound.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section A.1.

    Examples
    --------
    >>> f = random_hypercube(3, rng=np.random.default_rng(0))
    >>> f([[1, -1, 1]]).tolist() in ([1.0], [-1.0])
    True
    """
    n = checked_size(n, "the number `n` of columns")
    if n > MOST_COLUMNS:
        raise ValueError(f"a function of {n} columns has 2**{n} corners; choose n = {MOST_COLUMNS} or fewer.")
    return Multilinear(1.0 - 2.0 * checked_generator(rng).integers(2, size=2**n))


def _corner_weights(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([(1 + x) / 2, (1 - x) / 2], axis=1)


def _within(coefficients: NDArray[np.float64], radius: float) -> float:
    """Sum of coefficients of subsets S, each times radius**|S|."""
    for _ in range(coefficients.ndim):
        coefficients = coefficients[0] + radius * coefficients[1]
    return float(coefficients)
