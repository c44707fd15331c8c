r"""The law of a sum of signed weights :math:`a_1 x_1 + \dots + a_n x_n` at a uniform point of the cube.

For integers :math:`a_i \ge 0` with sum A it is a polynomial: the probability of the value :math:`2k - A` is the
coefficient of :math:`z^k` in

.. math:: \prod_{i=1}^n \tfrac12 (1 + z^{a_i}).

Each factor is a shift and a sum of non-negative numbers. So in floating point nothing cancels: after n factors every
probability has relative error at most ``n * 2**-53``, short of underflow. In exact numbers the same sums count points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = type[float] | type[Fraction]
Groups: TypeAlias = Sequence[tuple[int, int]]  # a weight, and how many coordinates have it


@dataclass(frozen=True, eq=False)
class SignedSum:
    """``mass[k] / whole`` is the probability of the value ``2 * k - A``, where ``len(mass) == A + 1``.

    The mass is float64 with ``whole == 1``, or Python integers that count the ``whole == 2**n`` points. The joint law
    of two sums has a table for its mass.
    """

    mass: NDArray[Any]
    whole: int

    @staticmethod
    def empty(numbers: Numbers) -> SignedSum:
        """The sum of no weights."""
        return SignedSum(np.array([1], dtype=float if numbers is float else object), 1)

    def plus(self, weight: int, times: int = 1) -> SignedSum:
        """With ``times`` more coordinates of this weight; each costs as many additions as there are values."""
        mass, whole = self.mass, self.whole
        for _ in range(times):
            if mass.dtype == object:
                whole *= 2
            else:
                mass = 0.5 * mass
            longer = np.zeros(len(mass) + weight, dtype=mass.dtype)
            longer[: len(mass)] = mass
            longer[weight:] += mass
            mass = longer
        return SignedSum(mass, whole)

    def plus_all(self, groups: Iterable[tuple[int, int]]) -> SignedSum:
        """With groups of coordinates, each a weight and a number of coordinates."""
        law = self
        for weight, times in groups:
            law = law.plus(weight, times)
        return law

    def mean(self, values: NDArray[Any]) -> Any:
        """Mean of a function of the sum, given as its value at every ``k``: a float or a Fraction."""
        total = (self.mass * values).sum()
        return Fraction(total, self.whole) if self.mass.dtype == object else float(total)

    def each_without_one(self, groups: Groups) -> Iterator[tuple[int, SignedSum]]:
        """Each weight of ``groups``, and the law with all their coordinates but one of that weight."""
        # Half of the groups are added before the recursion into the other half: for d groups log2(d) times the cost of
        # one law, and no division.
        if len(groups) == 1:
            weight, times = groups[0]
            yield weight, self.plus(weight, times - 1)
        elif groups:
            low, high = groups[: len(groups) // 2], groups[len(groups) // 2 :]
            yield from self.plus_all(high).each_without_one(low)
            yield from self.plus_all(low).each_without_one(high)


def correlated_sums(groups: Groups, rho: float | Fraction, numbers: Numbers) -> SignedSum:
    """Joint law of the sums at x and at y, where y is x under noise: its mass is a table (A + 1, A + 1).

    A pair of signs ``(x_i, y_i)`` has probability (1 + rho) / 4 if they are equal, else (1 - rho) / 4.
    """
    same, other, share = (1 + float(rho)) / 4, (1 - float(rho)) / 4, 1
    if numbers is Fraction:  # in integers, all probabilities times one number
        p, q = Fraction(rho).as_integer_ratio()
        same, other, share = q + p, q - p, 4 * q
    mass, whole = SignedSum.empty(numbers).mass[:, None], 1
    for weight, times in groups:
        for _ in range(times):
            size, longer = len(mass), len(mass) + weight
            alike, mixed = same * mass, other * mass
            mass = np.zeros((longer, longer), dtype=mass.dtype)
            mass[:size, :size] += alike
            mass[weight:, weight:] += alike
            mass[:size, weight:] += mixed
            mass[weight:, :size] += mixed
            whole *= share
    return SignedSum(mass, whole)


def central_difference(values: NDArray[Any], weight: int, times: int = 1) -> NDArray[Any]:
    r"""``f(s + weight) - f(s - weight)``, repeated: of values on a range of sums s, on the range shorter by weight."""
    for _ in range(times):
        values = values[weight:] - values[: len(values) - weight]
    return values


def n_choices(groups: Groups, degree: int) -> int:
    """Ways to take up to ``degree`` coordinates, distinguished by the number from each group."""
    ways = np.eye(1, degree + 1, dtype=object)[0]
    for _, times in groups:
        ways = np.convolve(ways, np.ones(min(times, degree) + 1, dtype=object))[: degree + 1]
    return int(ways.sum())


def derivative_means(
    law: SignedSum, values: NDArray[Any], groups: Groups, degree: int
) -> Iterator[tuple[int, int, Fraction]]:
    """For every such choice: size, number of subsets, and mean of the differences of ``values`` along them."""
    if not groups:
        yield 0, 1, law.mean(values)
        return
    (weight, times), *rest = groups
    for taken in range(min(times, degree) + 1):
        left = law.plus(weight, times - taken)
        for size, count, mean in derivative_means(
            left, central_difference(values, weight, taken), rest, degree - taken
        ):
            yield size + taken, count * comb(times, taken), mean
