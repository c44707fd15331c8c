"""Sums of squared coefficients by degree, each in a unit of its own, so that no square overflows or vanishes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Blocks = Callable[[], Iterable[tuple[NDArray[np.intp], Array]]]  # sizes of subsets, and their coefficients
LARGE = 2.0**400  # coefficients up to it, and from 1 / it on, have squares whose sums are floats


@dataclass(frozen=True, eq=False)
class Weights:
    r"""Weights :math:`W_d = w_d\, 4^{e_d}` of degrees 0, ..., n, where :math:`w_d` is a float even if W is none."""

    scaled: Array
    exponents: NDArray[np.intp]

    @classmethod
    def of(cls, blocks: Blocks, n: int) -> Weights:
        """Of coefficients in blocks, which are asked for twice or three times."""
        exponents = np.zeros(n + 1, dtype=np.intp)
        largest = max((float(np.abs(block).max(initial=0.0)) for _, block in blocks()), default=0.0)
        usual = not largest or 1 / LARGE <= largest <= LARGE
        if not usual:
            by_degree = np.zeros(n + 1)
            for sizes, block in blocks():
                np.maximum.at(by_degree, sizes, np.abs(block))
            exponents = np.frexp(by_degree)[1].astype(np.intp)
        scaled = np.zeros(n + 1)
        for sizes, block in blocks():
            part = block if usual else np.ldexp(block, -exponents[sizes])
            scaled += np.bincount(sizes, weights=part * part, minlength=n + 1)
        return cls(scaled, exponents)

    def values(self) -> Array:
        """The weights (n + 1,): infinite beyond the range of float64, 0 below it."""
        return _ldexp(self.scaled, 2 * self.exponents)

    def dot(self, factors: NDArray[Any]) -> float:
        """Sum of the weights times factors; right wherever it is a float, whatever the weights are."""
        terms = self.scaled * factors
        unit = self._unit(terms != 0)
        return float(_ldexp(np.ldexp(terms, 2 * (self.exponents - unit)).sum(), 2 * unit))

    def root(self) -> float:
        """Square root of the sum of all weights."""
        unit = self._unit(self.scaled != 0)
        return float(_ldexp(np.sqrt(np.ldexp(self.scaled, 2 * (self.exponents - unit)).sum()), unit))

    def _unit(self, some: NDArray[np.bool_]) -> int:
        return int(self.exponents[some].max(initial=self.exponents.min()))


def _ldexp(values: ArrayLike, exponents: ArrayLike) -> Array:
    with np.errstate(over="ignore"):
        scaled: Array = np.ldexp(values, exponents)
    return scaled
