"""Functions to learn, each with a proved Lipschitz bound: base class, sums, compositions; and how hard they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_generator, checked_size
from sparsact_papers.data.domains import Domain
from sparsact_papers.data.subspaces import checked_frame, random_frame

BLOCK: Final = 1 << 19  # float64 numbers of a temporary array, about a level-2 cache


class Target(ABC):
    """A function of the rows of an array: ``target(X)`` is ``y``, with a bound on how steep it is."""

    if TYPE_CHECKING:  # a subclass has a field or a property of this name

        @property
        def n(self) -> int:
            """Number of columns."""

    @abstractmethod
    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of rows that have been checked."""

    @abstractmethod
    def _steepness(self, radius: float) -> float:
        """Lipschitz bound within [-radius, radius]^n, which :class:`Composed` needs: rotations leave the cube."""

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m,) at points (m, n)."""
        return self._values(checked_columns(X, self.n))

    @property
    def lipschitz(self) -> float:
        """A bound L with ``|f(x) - f(x')| <= L * norm(x - x')`` (2-norm) for all x, x' in [-1, 1]^n."""
        return self._steepness(1.0)


def row_blocks(m: int, row_size: int) -> Iterator[slice]:
    """Slices of ``range(m)`` so short that ``row_size`` numbers a row fill :data:`BLOCK` at most, if one row does."""
    step = max(1, BLOCK // max(1, row_size))
    return (slice(start, start + step) for start in range(0, m, step))


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


@dataclass(frozen=True, eq=False, repr=False)
class Composed(Target):
    r"""The function :math:`x \mapsto p(A x)` of a target p and a matrix A with orthonormal rows.

    Notes
    -----
    *Lipschitz bound.* A is 1-Lipschitz, and the j-th coordinate of Ax is at most :math:`r \|a_j\|_1` for x within
    [-r, r]^ambient. So p's bound within :math:`r \max_j \|a_j\|_1` holds: Ax leaves [-1, 1]^k, where p's own bound
    stands, also if x does not leave its cube.

    Examples
    --------
    The product of the first and the third coordinate:

    >>> from sparsact_papers.data import Multilinear
    >>> Composed(Multilinear([1, -1, -1, 1]), [[1, 0, 0], [0, 0, 1]])([[2.0, 9.0, 3.0]])
    array([6.])
    """

    target: Target
    A: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target):
            raise TypeError(f"`target` must be a Target of sparsact_papers.data; got {self.target!r}.")
        A = checked_frame(np.asarray(self.A).T, "the transpose of `A`").T
        if len(A) != self.target.n:
            raise ValueError(f"`A` must have a row for each of the target's {self.target.n} columns; got {len(A)}.")
        object.__setattr__(self, "A", A)

    @property
    def n(self) -> int:
        """Number of columns."""
        return int(self.A.shape[1])

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.target._values(X @ self.A.T)

    def _steepness(self, radius: float) -> float:
        return self.target._steepness(radius * float(np.abs(self.A).sum(axis=1).max()))

    def __repr__(self) -> str:
        return f"Composed({self.target!r}, ambient={self.n})"


def random_composed(target: Target, ambient: int, *, rng: np.random.Generator) -> Composed:
    """The function x -> target(Ax) for uniformly random orthonormal rows A, as in Section A.2 of paper B.

    Parameters
    ----------
    target : Target
    ambient : int
        Number of columns of x, at least ``target.n``.
    rng : numpy.random.Generator

    Returns
    -------
    target : Composed
        On ``ambient`` columns, with its Lipschitz bound.

    Notes
    -----
    For x uniform on [-1, 1]^ambient a coordinate of Ax has variance 1/3, so about one in twelve leaves [-1, 1], where
    paper B's polynomials are small. The paper does not say how it draws x.
    """
    return Composed(target, random_frame(ambient, target.n, rng=rng).T)


@dataclass(frozen=True)
class Description:
    """Mean squared errors of two predictors that learn next to nothing, each with its standard error.

    ``variance`` is that of the best constant, ``linear_mse`` that of least squares with an intercept. A result without
    them beside it says little: some targets of paper B have a variance below the errors that it reports.
    """

    variance: float
    variance_error: float
    linear_mse: float
    linear_mse_error: float
    m: int

    def __str__(self) -> str:
        return (
            f"variance {self.variance:.3g} +- {self.variance_error:.1g}, "
            f"best linear MSE {self.linear_mse:.3g} +- {self.linear_mse_error:.1g} ({self.m} points)"
        )


def describe(target: Target, domain: Domain, *, m: int = 1 << 14, rng: np.random.Generator) -> Description:
    """Variance of a target on a domain, and the error of the best linear predictor on points it has not seen.

    Parameters
    ----------
    target : Target
    domain : Domain
        Inputs with ``target.n`` columns.
    m : int
        Points to fit with, and fresh points to measure on: 10 for each column, at least.
    rng : numpy.random.Generator

    Returns
    -------
    description : Description

    Notes
    -----
    The fitted predictor is worse than the best by a share of about ``domain.dimension / m``, on top of the standard
    errors, which are computed as for a mean of m independent values.

    Examples
    --------
    The product of two coordinates has variance 1/9, and no linear part:

    >>> from sparsact_papers.data import Cube, Multilinear
    >>> found = describe(Multilinear([1, -1, -1, 1]), Cube(2), rng=np.random.default_rng(0))
    >>> abs(found.variance - 1 / 9) < 5 * found.variance_error
    True
    >>> abs(found.linear_mse - 1 / 9) < 5 * found.linear_mse_error
    True
    """
    if target.n != domain.ambient:
        raise ValueError(f"{target} has {target.n} columns, points of {domain} have {domain.ambient}: compose them.")
    m, rng = checked_size(m, "the number `m` of points", 10 * (target.n + 1)), checked_generator(rng)
    X_fit, X = domain.sample(m, rng=rng), domain.sample(m, rng=rng)
    y_fit, y = target(X_fit), target(X)
    # y less its mean, so that errors of rounding stay small beside what varies.
    centre = X_fit.mean(axis=0)
    slopes = np.linalg.lstsq(X_fit - centre, y_fit - y_fit.mean(), rcond=None)[0]
    variance, variance_error = _mean((y - y.mean()) ** 2 * (m / (m - 1)))
    linear_mse, linear_mse_error = _mean((y - y_fit.mean() - (X - centre) @ slopes) ** 2)
    return Description(variance, variance_error, linear_mse, linear_mse_error, m)


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
