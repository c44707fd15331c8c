"""Halfspaces and neurons: the step and the ReLU of a weighted sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier.signed_sum import Numbers
from sparsact.fourier.units import Unit

LARGEST_VALUE = 1e150


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

    def __init__(self, w: Any, b: Any, numbers: Numbers = float) -> None:
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
