r"""Halfspaces, neurons, and every function of one weighted sum with rational weights, at any size.

A unit :math:`f(x) = \varphi(\langle w, x \rangle)` depends on x through one sum alone, whose law is a polynomial
(:mod:`sparsact.fourier.signed_sum`). Derivatives of f along the coordinates of S depend on the sum of the others:

.. math::

   \hat f(S) = \mathbb{E}[D_S f], \qquad
   D_i f(x) = \tfrac12 \bigl(f(x^{i \to +1}) - f(x^{i \to -1})\bigr), \qquad
   \mathrm{Inf}_i(f) = \mathbb{E}[(D_i f)^2].

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 2.1 and Lemma 6.
.. [O] R. O'Donnell, "Analysis of Boolean Functions", 2014, Sections 2.2 and 5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm, prod
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier.signed_sum import (
    Groups,
    Numbers,
    SignedSum,
    central_difference,
    correlated_sums,
    derivative_means,
    n_choices,
)
from sparsact.fourier.spectrum import LARGEST_TABLE, Spectrum, spectrum_of
from sparsact.hypercube import masks_of, points
from sparsact.validation.arrays import checked_rationals, checked_signs, checked_subset
from sparsact.validation.parameters import checked_correlation, checked_size

LARGEST_SUM: Final = 2**22  # of |w_i|, in steps of the weights' common grid: the length of a law
MOST_ADDITIONS: Final = 2**36  # twice the additions of one law: about a minute
LARGEST_JOINT_SUM: Final = 2**11  # the same for the joint law of two sums, a table
MOST_CHOICES: Final = 2**12  # of how many coordinates of each weight a subset holds
LARGEST_VALUE: Final = 1e150


@dataclass(frozen=True, repr=False)
class Unit(ABC):
    r"""A function :math:`f(x) = \varphi(\langle w, x \rangle)` on the cube with rational weights, a value.

    Parameters
    ----------
    w : n rational numbers
        Weights: integers, Fractions, or floats; each float is a fraction whose denominator is a power of two.
    b : rational number
        Threshold.
    numbers : float or Fraction, default=float
        Type of the computation and of the results; arrays of Fractions are arrays of objects.

    Notes
    -----
    The sum :math:`A = \sum_i |w_i|` may be at most ``2**22`` steps of the grid on which the weights lie, and ``n * A``
    at most ``2**36``: the law of the sum costs ``n * A / 2`` additions, once. With floats a mean or an influence is a
    sum of non-negative numbers with relative error at most ``(n + 50) * 2**-53`` (a noise sensitivity
    ``(5 * n + 50) * 2**-53``), short of underflow; a coefficient has signs in its sum and *absolute* error at most
    :math:`(n + 50)\, 2^{-53}\, \mathbb{E}|D_S f|` if the values of f are float64 numbers (with integers and halves they
    are), so that small coefficients of large subsets need Fractions.
    """

    w: tuple[Fraction, ...]
    b: Fraction
    numbers: Numbers = field(default=float)

    def __init__(self, w: ArrayLike | Sequence[Fraction], b: float | Fraction, numbers: Numbers = float) -> None:
        if numbers not in (float, Fraction):
            raise ValueError(f"`numbers` is float or fractions.Fraction, in which to compute; got {numbers!r}.")
        object.__setattr__(self, "w", checked_rationals(w, "`w`"))
        object.__setattr__(self, "b", checked_rationals([b], "`b`")[0])
        object.__setattr__(self, "numbers", numbers)
        if not self.w:
            raise ValueError("`w` is empty; a unit needs at least one input.")
        if self._sum > LARGEST_SUM:
            step, size = Decimal(self._step) / self._denominator, len(str(self._sum)) - 1
            raise ValueError(
                f"weights in units of their common step, {step:.3g}, may sum to {LARGEST_SUM} in magnitude; they sum "
                f"to about 1e{size}: round them, np.round(64 * w) / 64, or call sparsact.fourier.estimate_influences."
            )
        if self._sum * self.n > MOST_ADDITIONS:
            raise ValueError(
                f"the law of a sum of {self.n} weights takes {self.n} * {self._sum} / 2 additions, too many: round the "
                "weights to a coarser grid, or sample with sparsact.fourier.estimate_influences."
            )

    @cached_property
    def _denominator(self) -> int:
        """One number that makes all weights and the threshold integers."""
        return lcm(*(number.denominator for number in (*self.w, self.b)))

    @cached_property
    def _step(self) -> int:
        """Greatest common divisor of the integer weights."""
        return gcd(*(int(weight * self._denominator) for weight in self.w)) or 1

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        """Magnitudes of the weights in steps."""
        return tuple(abs(int(weight * self._denominator)) // self._step for weight in self.w)

    @cached_property
    def _sum(self) -> int:
        return sum(self._weights)

    @cached_property
    def _groups(self) -> Groups:
        """Magnitudes other than 0, ascending, and how many coordinates have each."""
        return sorted(Counter(weight for weight in self._weights if weight).items())

    @cached_property
    def _values(self) -> NDArray[Any]:
        """Value of f at every value of the sum, ascending, times :attr:`_unit`; floats, or Python integers."""
        sums = np.arange(-self._sum, self._sum + 1, 2).astype(object) * self._step
        values = self._profile(sums - int(self.b * self._denominator))
        return values if self.numbers is Fraction else (values / self._value_scale).astype(np.float64)

    @property
    def _unit(self) -> int:
        return self._value_scale if self.numbers is Fraction else 1

    @property
    @abstractmethod
    def _value_scale(self) -> int:
        """Factor that makes every value of f an integer."""

    @abstractmethod
    def _profile(self, excess: NDArray[Any]) -> NDArray[Any]:
        """Value of f times that scale where <w, x> - b, times the denominator, is ``excess``: Python integers."""

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.w)

    def mean(self) -> Any:
        r"""Mean :math:`\mathbb{E}[f] = \hat f(\emptyset)`; for a halfspace the share p of points inside."""
        return self.coefficient(())

    def second_moment(self) -> Any:
        r"""Mean square :math:`\mathbb{E}[f^2] = \sum_S \hat f(S)^2`."""
        law = SignedSum.empty(self.numbers).plus_all(self._groups)
        return law.mean(self._values**2) / self._unit**2

    def coefficient(self, subset: Iterable[int]) -> Any:
        r"""Coefficient :math:`\hat f(S) = \mathbb{E}[f(x) \chi_S(x)]` of a tuple of coordinates.

        The mean of :math:`D_S f` over the coordinates outside S: one law of :math:`n - |S|` weights. Zero exactly
        where a weight of S is zero.
        """
        members = checked_subset(subset)
        masks_of([members], self.n)  # validates the coordinates
        weights = [self._weights[i] for i in members]
        if not all(weights):
            return self.numbers(0)
        values = self._values
        for weight in weights:
            values = central_difference(values, weight)
        others = Counter(dict(self._groups)) - Counter(weights)
        law = SignedSum.empty(self.numbers).plus_all(sorted(others.items()))
        sign = prod(-1 if self.w[i] < 0 else 1 for i in members)
        return sign * law.mean(values) / (2 ** len(members) * self._unit)

    def influences(self) -> NDArray[Any]:
        r"""Influence :math:`\mathbb{E}\,\frac14 (f(x) - f(x^{\oplus i}))^2` of every coordinate, shape (n,).

        It depends on :math:`|w_i|` alone. For d magnitudes ``log2(d)`` times the cost of one law.
        """
        by_weight = {0: self.numbers(0)}
        for weight, law in SignedSum.empty(self.numbers).each_without_one(self._groups):
            squares = central_difference(self._values, weight) ** 2
            by_weight[weight] = law.mean(squares) / (2 * self._unit) ** 2
        return np.array([by_weight[weight] for weight in self._weights])

    def total_influence(self) -> Any:
        r"""Sum of the influences: the average sensitivity AS(f) of [A]_, with its 1/4.

        For a halfspace of mean p at most :math:`\frac{p}{\sqrt 2} \sqrt{n \ln(1/p)}`: Lemma 6 of [A]_, with its
        constant from the level-1 inequality ([O]_, Section 5.4).
        """
        return self.numbers(self.influences().sum())

    def noise_sensitivity(self, rho: float | Fraction) -> Any:
        r"""Noise sensitivity :math:`\mathbb{E}\,\frac14 (f(x) - f(y))^2`, as :meth:`Spectrum.noise_sensitivity`.

        From the joint law of the two sums, a table: ``2 n A**2`` operations for weights of sum A up to ``2**11``.
        """
        checked_correlation(rho)
        if self._sum > LARGEST_JOINT_SUM:
            raise ValueError(
                f"exact noise sensitivity takes weights of sum up to {LARGEST_JOINT_SUM}; these sum to {self._sum}: "
                "round them to a coarser grid, or call sparsact.fourier.estimate_noise_sensitivity."
            )
        law = correlated_sums(self._groups, rho, self.numbers)
        return law.mean((self._values[:, None] - self._values) ** 2) / (2 * self._unit) ** 2

    def weight_by_degree(self, degree: int) -> NDArray[Any]:
        r"""Sums of squared coefficients :math:`\sum_{|S| = k} \hat f(S)^2` for k = 0 to ``degree``, (degree + 1,).

        Except for its sign, a coefficient depends on how many coordinates of each magnitude S holds: one law for each
        such choice. These laws are exact, and floats are rounded at the end, as millions of subsets may share a small
        coefficient and with it the square of its rounding error.
        """
        checked_size(degree, "`degree`", minimum=0, maximum=self.n)
        exact = self if self.numbers is Fraction else type(self)(self.w, self.b, Fraction)
        choices = n_choices(self._groups, degree)
        if choices > MOST_CHOICES:
            raise ValueError(
                f"subsets of size up to {degree} hold weights of each magnitude in {choices} ways, at most "
                f"{MOST_CHOICES} are listed: lower `degree`, or for n up to {LARGEST_TABLE} take Spectrum.of."
            )
        weights = [Fraction(0)] * (degree + 1)
        for size, count, mean in derivative_means(SignedSum.empty(Fraction), exact._values, self._groups, degree):
            weights[size] += count * (mean / (2**size * exact._unit)) ** 2
        return np.array([self.numbers(weight) for weight in weights])

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values at the rows of ``X``, signs (m, n); float64, each the exact value rounded, shape (m,)."""
        signs = checked_signs(X, self.n).astype(np.int64) * np.array([-1 if w < 0 else 1 for w in self.w])
        place = (signs @ np.array(self._weights) + self._sum) // 2
        return np.asarray((self._values / self._unit).astype(np.float64)[place])

    def __repr__(self) -> str:
        weights = ", ".join(map(str, self.w[:5])) + ", ..." * (self.n > 5)
        return f"<{type(self).__name__} of {self.n} weights ({weights}), b = {self.b}>"


@spectrum_of.register
def spectrum_of_unit(unit: Unit) -> Spectrum:
    """Spectrum of a halfspace or a neuron on up to 26 inputs, from all its values."""
    if unit.n > LARGEST_TABLE:
        raise ValueError(
            f"a table of 2**{unit.n} coefficients is too large (n up to {LARGEST_TABLE}); ask the unit itself, "
            "as by coefficient(S), influences() or weight_by_degree(d)."
        )
    return Spectrum.of(unit(points(unit.n)))


class Halfspace(Unit):
    r"""The halfspace :math:`g(x) = \mathbb{1}\{\langle w, x \rangle > b\}`, with values 0 and 1; a tie is outside.

    Examples
    --------
    The majority of three bits; and, exactly, a quarter of the chance that one of 1001 votes decides:

    >>> Halfspace([1, 1, 1], 0).coefficient((0, 1, 2))
    -0.25
    >>> from fractions import Fraction
    >>> from math import comb
    >>> Halfspace([1] * 1001, 0, Fraction).influences()[0] == Fraction(comb(1000, 500), 4 * 2**1000)
    True
    """

    @property
    def _value_scale(self) -> int:
        return 1

    def _profile(self, excess: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((excess > 0).astype(int).astype(object))


class Neuron(Unit):
    r"""The neuron :math:`f(x) = \sigma(\langle w, x \rangle - b)` with :math:`\sigma(z) = \max(z, 0)`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> Neuron([1, 1], Fraction(1, 2), Fraction).mean()  # 3/2 at one point of four
    Fraction(3, 8)
    >>> Neuron([2, -1], 0).influences()
    array([1.25, 0.5 ])
    """

    def __init__(self, w: ArrayLike | Sequence[Fraction], b: float | Fraction, numbers: Numbers = float) -> None:
        super().__init__(w, b, numbers)
        if numbers is float and sum(map(abs, self.w)) + abs(self.b) > LARGEST_VALUE:
            raise ValueError(
                f"values of the neuron, at most the sum of all magnitudes, go up to {LARGEST_VALUE:.0e}, so that their "
                "squares are floats: scale `w` and `b` down, or compute with numbers=Fraction."
            )

    @property
    def _value_scale(self) -> int:
        return self._denominator

    def _profile(self, excess: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.maximum(excess, 0))
