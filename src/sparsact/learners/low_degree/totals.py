"""Exact totals over rows: their weight, and the sums and squares of their targets."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.exact_sum import LIMB_BITS, ExactSum

MAX_UNIT: Final = 31  # of a unit that is a float; targets beyond 2**992 are below 2**32 of it
_MAX_APART: Final = 332  # powers of two between targets, so that squares of the smaller do not vanish


class Totals:
    """Exact totals over the rows seen so far.

    Attributes
    ----------
    n_rows : int
        Rows of non-zero weight.
    weight, sums, squares : ExactSum of shape (1,), (T,), (T,)
        Sums of ``w``, ``w * y_t`` and ``w * y_t**2``.
    """

    def __init__(self, n_targets: int) -> None:
        self.n_rows = 0
        self.weight = ExactSum.zeros((1,))
        self.sums = ExactSum.zeros((n_targets,))
        self.squares = ExactSum.zeros((n_targets,))

    def update(self, y: NDArray[np.float64], weights: NDArray[np.float64], sign: int = 1) -> None:
        """Add (sign 1) or take away (sign -1) rows: targets (m, T), weights (m,), already carrying the sign."""
        self.n_rows += sign * len(y)
        self.weight.add(weights, None, np.zeros(len(y), dtype=np.uint64))
        for target, column in enumerate(y.T):
            values = np.ascontiguousarray(column)
            here = np.full(len(y), target, dtype=np.uint64)
            self.sums.add(values, weights, here)
            self.squares.add(values, weights, here, values)

    def merge(self, other: Totals, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        self.n_rows += sign * other.n_rows
        for mine, theirs in zip(self.parts(), other.parts(), strict=True):
            mine.merge(theirs, sign)

    def copy(self) -> Totals:
        """An independent copy."""
        twin = Totals(self.sums.shape[0])
        twin.merge(self)
        return twin

    def parts(self) -> tuple[ExactSum, ExactSum, ExactSum]:
        """The exact sums: weight, sums, squares."""
        return self.weight, self.sums, self.squares

    def target_exponent(self) -> int:
        """Place on the grid of limbs of a unit of the targets: near their root mean square, so that squares are floats.

        Raises
        ------
        ValueError
            If targets differ so much in size that no unit serves all.
        """
        (weight,) = self.weight.to_fractions()
        sizes = [square / weight for square in self.squares.to_fractions()] if weight > 0 else []
        some = [size for size in sizes if size > 0]
        if not some:
            return 0
        powers = [size.numerator.bit_length() - size.denominator.bit_length() for size in some]
        check_alike((max(powers) - min(powers)) // 2, sizes.index(min(some)), sizes.index(max(some)))
        return min(round(max(powers) / (2 * LIMB_BITS)), MAX_UNIT)

    def mean(self, place: int) -> NDArray[np.float64]:
        """The mean of each target over ``2**(32 * place)``, rounded once; zeros if there is no weight."""
        (weight,) = self.weight.to_fractions()
        if not weight:
            return np.zeros(self.sums.shape)
        return np.array([float(total / weight) for total in self.sums.rescaled(place).to_fractions()])

    def rescaled(self, place: int, origin: NDArray[np.float64]) -> Totals:
        """The totals of ``y_t / 2**(32 * place) - origin_t``, exactly; to read from."""
        view = Totals(self.sums.shape[0])
        view.n_rows, view.weight = self.n_rows, self.weight
        view.sums, view.squares = self.sums.rescaled(place), self.squares.rescaled(2 * place)
        if origin.any():
            both, view.sums, view.squares = view.sums.copy(), view.sums.copy(), view.squares.copy()
            view.sums.add_multiples(self.weight, -origin)
            both.merge(view.sums)  # w (y - c)**2 = w y**2 - c (w y + w (y - c))
            view.squares.add_multiples(both, -origin)
        return view

    def squares_about(self, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sum of ``(y_t - centre_t)**2`` per target, rounded once: nothing cancels; inf beyond float64."""
        if not np.isfinite(centre).all():
            raise ValueError("the mean of a target is beyond any double; scale the targets down, or the weights up.")
        (weight,) = self.weight.to_fractions()
        return np.array(
            [
                _rounded(square - 2 * Fraction(c) * total + Fraction(c) ** 2 * weight)
                for c, total, square in zip(
                    centre.tolist(), self.sums.to_fractions(), self.squares.to_fractions(), strict=True
                )
            ]
        )


def _rounded(value: Fraction) -> float:
    """The nearest float; of what none reaches, infinity."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def check_alike(powers_of_two: int, small: int, large: int) -> None:
    """Refuse targets so far apart in size that squares of both are not float64 in one unit."""
    if powers_of_two > _MAX_APART:
        raise ValueError(
            f"targets {small} and {large} differ in size by more than 1e100, so that no unit serves the squares of "
            "both; fit them in turns, or scale them."
        )
