"""Analytic functions that are hard to tell apart: the cosine series of Theorem D.1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, floor, pi, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_generator, checked_positive, checked_size
from sparsact_papers.data.targets import Target, separable_sum

MOST_TERMS: Final = 1 << 22
MOST_GRID_POINTS: Final = 1 << 21
FINENESS: Final = 8  # grid points for each wave of the highest frequency


@dataclass(frozen=True, eq=False, repr=False)
class CosineSeries(Target):
    r"""A sum of cosines of every frequency n in {1, ..., N}^k.

    .. math:: f(x) = \sum_{n_1, \dots, n_k = 1}^{N} a_n
        \bigl(e^{i \pi n^\top x} + e^{-i \pi n^\top x}\bigr) = 2 \sum_n a_n \cos(\pi n^\top x)

    Parameters
    ----------
    amplitudes : array-like of shape (N,) * k
        The a_n; n = (1, ..., 1) comes first.

    Notes
    -----
    Equation (3) of the paper prints the same exponential twice, which is not real. Its frequencies begin at 0, but its
    count of terms, N^k, holds for 1 to N.

    The cosines are orthogonal on [-1, 1]^k, with mean 0 and mean square 1/2, so the mean of f^2 is
    :math:`2 \sum_n a_n^2`.

    *Lipschitz bound*, on all of R^k as f is periodic: the largest :math:`\|\nabla f\|` over a grid of 8 N points for
    each period of each coordinate, over :math:`\cos(\pi / 8)^k`. *Proof.* A derivative in a fixed direction is, in each
    coordinate, a real trigonometric polynomial T of degree N. Around a point where :math:`T = \max |T|` it is at least
    :math:`\max |T| \cos(N s)` at a distance :math:`s \le \pi / N` (M. Riesz), and a grid of M points has one
    at :math:`s \le \pi / M`. Take the coordinates in turn. Where the grid would have over two million points, the bound
    is the triangle inequality's, :math:`2 \pi \bigl\| \sum_n |a_n| n \bigr\|`, which is far from sharp.

    Two complex matrix products of N^k terms a point.

    Examples
    --------
    2 cos(pi x):

    >>> CosineSeries([1.0])([[0], [0.5], [1]]).round(12) + 0.0
    array([ 2.,  0., -2.])
    """

    amplitudes: NDArray[np.float64]

    def __post_init__(self) -> None:
        amplitudes = checked_reals(self.amplitudes, "`amplitudes`").copy()
        if not amplitudes.ndim or not amplitudes.size or len(set(amplitudes.shape)) > 1:
            raise ValueError(f"`amplitudes` must have axes of one length N, one a column; got {amplitudes.shape}.")
        object.__setattr__(self, "amplitudes", amplitudes)

    @property
    def n(self) -> int:
        """Number k of columns."""
        return self.amplitudes.ndim

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return 2 * separable_sum(X, self._waves, self.amplitudes)

    def _waves(self, x: NDArray[np.float64]) -> NDArray[np.complex128]:
        frequencies = np.arange(1, len(self.amplitudes) + 1)
        return np.asarray(np.exp(1j * pi * x[:, None] * frequencies))

    def _steepness(self, radius: float) -> float:
        return self._bound

    @cached_property
    def _bound(self) -> float:
        N, k = len(self.amplitudes), self.n
        frequencies = np.meshgrid(*[np.arange(1.0, N + 1)] * k, indexing="ij", sparse=True)
        if (FINENESS * N) ** k > MOST_GRID_POINTS:
            return 2 * pi * float(np.linalg.norm([(np.abs(self.amplitudes) * n).sum() for n in frequencies]))
        squares = sum(self._on_grid(self.amplitudes * n).imag ** 2 for n in frequencies)
        return 2 * pi * sqrt(np.max(squares)) / cos(pi / FINENESS) ** k

    def _on_grid(self, coefficients: NDArray[np.float64]) -> NDArray[np.complex128]:
        """The sum of coefficient times exp(-i pi n.x) at every point x of a grid of one period."""
        N = len(coefficients)
        padded = np.zeros((FINENESS * N,) * self.n)
        padded[(slice(1, N + 1),) * self.n] = coefficients
        return np.fft.fftn(padded)

    def __repr__(self) -> str:
        return f"CosineSeries(n={self.n}, frequencies={len(self.amplitudes)})"


def random_analytic(
    k: int, epsilon: float, lipschitz: float = 1.0, *, constant: float = 6.0, rng: np.random.Generator
) -> CosineSeries:
    r"""A random member of Theorem D.1's family: cosines of N^k frequencies with signs by fair coins.

    .. math:: a_n = \pm \frac{L}{C \sqrt k\, \pi} N^{-(k/2 + 1)}, \qquad
        N = \Bigl\lfloor \frac{L}{C \sqrt k\, \pi\, \epsilon} \Bigr\rfloor

    Parameters
    ----------
    k : int
    epsilon : float
        Two members that differ in half of their signs, as two random ones about do, differ by ``2 * epsilon`` or more
        somewhere.
    lipschitz : float
        L.
    constant : float
        The paper's "large enough" C.
    rng : numpy.random.Generator

    Returns
    -------
    target : CosineSeries
        One of 2^(N^k). Its ``lipschitz`` is a bound for the function drawn: compare it with L.

    Notes
    -----
    *Separation.* f - g is :math:`4 \sum a_n \cos(\pi n^\top x)` over the n whose signs differ, so its mean square is 8
    times the sum of their :math:`a_n^2`: for half of the N^k it is :math:`(2 L / (C \sqrt k \pi N))^2 \ge (2
    \epsilon)^2`, and the largest value is no less than the root of the mean square.

    *Where we leave the paper.* Its inequality (10) has a further factor :math:`2^{k/2}`, from an integral over the
    cube that has been divided by the volume :math:`2^k` already; so N has none here. And its inequality (7) holds at
    a fixed x: that f is L-Lipschitz everywhere, for one C and all k and N, it does not show. A random member has
    :math:`\mathbb{E} \|\nabla f(x)\|^2 \le 2 L^2 / C^2`.
    """
    k = checked_size(k, "the number `k` of columns")
    L, epsilon = checked_positive(lipschitz, "`lipschitz`"), checked_positive(epsilon, "`epsilon`")
    top = L / (checked_positive(constant, "`constant`") * sqrt(k) * pi)
    if top < epsilon:
        raise ValueError(f"`epsilon` must be at most lipschitz / (constant sqrt(k) pi) = {top:.3g}; got {epsilon}.")
    if k * np.log2(top / epsilon) > np.log2(MOST_TERMS):
        raise ValueError(f"(lipschitz / (constant sqrt(k) pi epsilon))^k exceeds {MOST_TERMS} terms; raise epsilon.")
    N = floor(top / epsilon)
    signs = 1.0 - 2.0 * checked_generator(rng).integers(2, size=(N,) * k)
    return CosineSeries(top * N ** -(k / 2 + 1) * signs)
