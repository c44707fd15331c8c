"""Targets that are multilinear or polynomial, each with a proved Lipschitz bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.validation.arrays import checked_reals, checked_table
from sparsact.validation.parameters import checked_generator, checked_size
from sparsact_papers.data.targets import Target, row_blocks, separable_sum

MOST_COLUMNS: Final = 26  # a table of 2**26 float64 numbers is half a gigabyte


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

    Returns
    -------
    target : Multilinear
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


MOST_MONOMIALS: Final = 10**7


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(Target):
    r"""The polynomial of n variables with a coefficient for each monomial of degree at most ``degree``.

    .. math:: p(x) = \sum_{|a| \le D} c_a \prod_i x_i^{a_i}

    Monomials are ordered by degree, then as ``itertools.combinations_with_replacement``, as scikit-learn does:
    :math:`1, x_0, x_1, x_0^2, x_0 x_1, x_1^2` for n = 2 and degree 2.

    Parameters
    ----------
    n, degree : int
        Both at least 1.
    coefficients : array-like of shape (comb(n + degree, degree),)

    Notes
    -----
    Cost a point: one multiplication for each monomial of a lower degree, and n times as many in a matrix product, by

    .. math:: p(x) = c_0 + \sum_i x_i \sum_b Q_{i b}\, x^b, \qquad |b| < D,

    where each monomial has given its first variable away.

    *Lipschitz bound* within [-r, r]^n: :math:`|\partial_i p| \le g_i = \sum_a |c_a| a_i r^{|a| - 1}`, so
    :math:`\|g\|_2`. For :math:`\sum |c_a| = 1` and r = 1 that is at most the degree, and :math:`x_0^D` attains it: it
    does not depend on n, but, unlike what Section A.1 of the paper says, on the degree it must.

    Examples
    --------
    1 + 2 x0 x1:

    >>> Polynomial(2, 2, [1, 0, 0, 0, 2, 0])([[3, 5]])
    array([31.])
    """

    n: int
    degree: int
    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        n_monomials = _n_monomials(self.n, self.degree)
        coefficients = checked_reals(self.coefficients, "`coefficients`").copy()
        if coefficients.shape != (n_monomials,):
            raise ValueError(
                f"a polynomial of {self.n} variables and degree {self.degree} has {n_monomials} coefficients; "
                f"got shape {coefficients.shape}."
            )
        object.__setattr__(self, "coefficients", coefficients)

    @cached_property
    def _quotients(self) -> NDArray[np.float64]:
        """Q of the class's formula, shape (n, monomials of a lower degree)."""
        Q = np.zeros((self.n, comb(self.n + self.degree - 1, self.n)))
        place, lower = 1, 0  # of the first monomial of a degree, and of the degree below
        for degree in range(1, self.degree + 1):
            end = comb(self.n + degree - 1, self.n)
            for i, start in enumerate(_suffixes(self.n, degree - 1)):
                size = end - lower - start
                Q[i, lower + start : end] = self.coefficients[place : place + size]
                place += size
            lower = end
        return Q

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        Q = self._quotients
        values = np.empty(len(X))
        for block in row_blocks(len(X), Q.shape[1]):
            columns = np.ascontiguousarray(X[block].T)
            values[block] = np.einsum("ij,ij->j", Q @ _monomials(columns, self.degree - 1), columns)
        values += self.coefficients[0]
        return values

    def _steepness(self, radius: float) -> float:
        slopes, row = np.zeros(self.n), 0
        for degree, members in enumerate(_members(self.n, self.degree)):
            sizes = np.abs(self.coefficients[row : row + len(members)]) * radius ** max(degree - 1, 0)
            row += len(members)
            for variable in members.T:
                slopes += np.bincount(variable, weights=sizes, minlength=self.n)
        return float(np.linalg.norm(slopes))

    def __repr__(self) -> str:
        return f"Polynomial(n={self.n}, degree={self.degree})"


def random_polynomial(n: int, degree: int, *, rng: np.random.Generator) -> Polynomial:
    """The random polynomial of paper B: coefficients uniform on [-1, 1], scaled so that their absolute values sum to 1.

    The paper does not say which monomials there are: here all of degree ``degree`` or less, the constant and powers
    such as x_0^2 among them. Nor does the scaling bound the Lipschitz constant independently of the degree, as it says:
    on the cube it is at most the degree, and x_0^D has D. Divide by ``lipschitz`` where it matters.

    Parameters
    ----------
    n : int
    degree : int
    rng : numpy.random.Generator

    Returns
    -------
    target : Polynomial

    Notes
    -----
    Such a polynomial is nearly constant: for n = 8 and degree 4 its variance on the cube is about 1e-4. A small error
    says little, then; put :func:`~sparsact_papers.data.describe` beside it.
    """
    coefficients = checked_generator(rng).uniform(-1, 1, size=_n_monomials(n, degree))
    return Polynomial(n, degree, coefficients / np.abs(coefficients).sum())


def _n_monomials(n: int, degree: int) -> int:
    n, degree = checked_size(n, "the number `n` of columns"), checked_size(degree, "`degree`")
    n_monomials = comb(n + degree, degree)
    if n_monomials > MOST_MONOMIALS:
        raise ValueError(
            f"{n} variables have {n_monomials} monomials of degree {degree} or less; "
            f"lower n or the degree, to at most {MOST_MONOMIALS}."
        )
    return n_monomials


def _members(n: int, degree: int) -> Iterator[NDArray[np.intp]]:
    """Variables of each monomial, with repetition: for each degree d in turn an array of shape (monomials, d)."""
    for d in range(degree + 1):
        members = list(combinations_with_replacement(range(n), d))
        yield np.array(members, dtype=np.intp).reshape(len(members), d)


def _suffixes(n: int, degree: int) -> list[int]:
    """For each i, the place among the monomials of a degree where products of the variables i, i + 1, ... begin."""
    total = comb(n + degree - 1, degree)
    return [total - comb(n - i + degree - 1, degree) for i in range(n)]


def _monomials(columns: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """All monomials (monomials, m) of columns (n, m) up to a degree: x_i times monomials of no earlier variable."""
    n, m = columns.shape
    monomials = np.ones((comb(n + degree, n), m))
    place, lower = 1, 0
    for d in range(1, degree + 1):
        end = comb(n + d - 1, n)
        for i, start in enumerate(_suffixes(n, d - 1)):
            size = end - lower - start
            np.multiply(monomials[lower + start : end], columns[i], out=monomials[place : place + size])
            place += size
        lower = end
    return monomials
