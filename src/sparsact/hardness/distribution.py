r"""Labelled distributions: points of the cube with the label of an unknown function.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import Spectrum
from sparsact.fourier.coefficients import DenseCoefficients
from sparsact.hypercube import Masks, bits_to_signs, masks_of, members_in_rounds, n_words, points, subsets_of
from sparsact.lift import Lift
from sparsact.validation.arrays import checked_per_row
from sparsact.validation.parameters import checked_generator, checked_size

LARGEST_ENUMERATION: Final = 16  # bits: 65536 points, of n coordinates each


class Examples(NamedTuple):
    """Points ``X``, signs (rows, n), and their labels ``y`` (rows,)."""

    X: NDArray[np.int8]
    y: NDArray[np.float64]


class Support(NamedTuple):
    """Every point of positive probability, with its label and that probability."""

    X: NDArray[np.int8]
    y: NDArray[np.float64]
    probability: NDArray[np.float64]


class LabelledDistribution(ABC):
    """A distribution of points of the cube, each with the label of one function."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of coordinates of a point."""

    @abstractmethod
    def sample(self, n_samples: int, *, rng: np.random.Generator) -> Examples:
        """Independent examples."""

    @property
    @abstractmethod
    def _tabulated(self) -> Examples:
        """All points, each of the same probability; a ValueError where there are too many."""

    def support(self) -> Support:
        """All points, for exact expectations; a ValueError where there are too many."""
        X, y = self._tabulated
        return Support(X, y, np.full(len(y), 1 / len(y)))

    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        r"""Exact :math:`\mathbb{E}[y\, \chi_T(x)]` of every subset T, shape (N,)."""
        X, y, probability = self.support()
        return weighted_characters(X, y * probability, masks)

    def character_means(self, masks: Masks) -> NDArray[np.float64]:
        r"""Exact :math:`\mathbb{E}[\chi_T(x)]` of every subset T, shape (N,)."""
        X, _, probability = self.support()
        return weighted_characters(X, probability, masks)

    @property
    def largest_label(self) -> float:
        """Largest magnitude of a label."""
        return float(np.abs(self.support().y).max())


def weighted_characters(X: NDArray[np.int8], weights: NDArray[np.float64], masks: Masks) -> NDArray[np.float64]:
    r"""Sums :math:`\sum_x w_x \chi_T(x)` over the rows of X, one for each subset T, shape (N,)."""
    return np.array([weights @ X[:, list(subset)].prod(axis=1) for subset in subsets_of(masks)], dtype=np.float64)


def frozen(X: NDArray[np.int8], y: NDArray[np.float64]) -> Examples:
    """Read-only examples, as they are passed to the queries of users."""
    kept = Examples(X, y.copy())  # the function itself may own the labels
    for array in kept:
        array.setflags(write=False)
    return kept


class LiftedFunction(LabelledDistribution):
    r"""Points :math:`x(y)` of a lift and labels :math:`f(y)`, for uniform :math:`y \in \{-1, 1\}^m`.

    Parameters
    ----------
    f : Spectrum, table of 2**m values, or callable
        The function of y. A spectrum gives exact correlations at any m; a callable takes signs (rows, m), and gives
        them where m is at most 16.
    m : int
        Number of uniform bits.
    lift : Lift, optional
        The map x(y); by default y itself, so that points are uniform on the cube.

    Examples
    --------
    >>> parity = LiftedFunction(Spectrum.of({(0, 2): 1.0}, n=3), 3, Lift.quadratic(3))
    >>> parity.n
    9
    >>> parity.correlations(masks_of([(0, 8), (2,), (1,)], 9))
    array([1., 1., 0.])
    """

    def __init__(self, f: Spectrum | ArrayLike | Callable[..., Any], m: int, lift: Lift | None = None) -> None:
        checked_size(m, "`m`, the number of uniform bits,")
        self.lift, self.m = Lift.of(lift, m), m
        self.f: Callable[..., Any] = f if callable(f) else Spectrum.of(f)
        if isinstance(self.f, Spectrum) and self.f.n != m:
            raise ValueError(f"the function has {self.f.n} coordinates, not m = {m}; pass its own number.")

    @property
    def n(self) -> int:
        """Number of coordinates of a lifted point."""
        return self.lift.n

    def labels(self, Y: NDArray[np.int8]) -> NDArray[np.float64]:
        """Labels f(y) of bits Y (rows, m) before the lift."""
        return checked_per_row(self.f(Y), len(Y), "the function")

    def sample(self, n_samples: int, *, rng: np.random.Generator) -> Examples:
        """Examples (x(y), f(y)) of independent uniform y."""
        Y = bits_to_signs(checked_generator(rng).integers(2, size=(n_samples, self.m), dtype=np.int8))
        return Examples(self.lift(Y), self.labels(Y))

    @cached_property
    def _tabulated(self) -> Examples:
        """All ``2**m`` lifted points, in table order of y; at most 16 bits."""
        y = self._label_table
        return frozen(self.lift(points(self.m)), y)

    @cached_property
    def _label_table(self) -> NDArray[np.float64]:
        if self.m > LARGEST_ENUMERATION:
            raise ValueError(
                f"an exact expectation needs all 2**m points, for m at most {LARGEST_ENUMERATION}; here m = {self.m}: "
                'pass f as a Spectrum and query characters, or take answers="sampling".'
            )
        return self.labels(points(self.m))

    @cached_property
    def spectrum(self) -> Spectrum:
        """Spectrum of f, as a function of the bits before the lift."""
        return Spectrum.of(self.f if isinstance(self.f, Spectrum) else self._label_table)

    @property
    def largest_label(self) -> float:
        """Largest magnitude of a label; for more than 2**16 points a lower bound on it, the root mean square."""
        return float(np.abs(self._label_table).max()) if self.m <= LARGEST_ENUMERATION else self.spectrum.norm()

    def correlations(self, masks: Masks) -> NDArray[np.float64]:
        r"""Exact :math:`\mathbb{E}[f(y)\, \chi_T(x(y))]`: the coefficient of f at the bits to which T reduces."""
        bits, spectrum = pulled_back(self.lift, masks), self.spectrum
        if isinstance(spectrum.storage, DenseCoefficients):
            return np.asarray(spectrum.coefficients[bits[:, 0].astype(np.intp)])
        found = np.zeros(len(bits))
        for mask, coefficient in zip(spectrum.masks, spectrum.coefficients, strict=True):
            found[(bits == mask).all(axis=1)] = coefficient
        return found

    def character_means(self, masks: Masks) -> NDArray[np.float64]:
        r"""Exact :math:`\mathbb{E}[\chi_T(x(y))]`: 1 where the bits of T cancel, else 0."""
        return np.asarray((pulled_back(self.lift, masks) == 0).all(axis=1), dtype=np.float64)


def pulled_back(lift: Lift, masks: Masks) -> Masks:
    r"""Masks of the subsets U of bits with :math:`\chi_T(x(y)) = \chi_U(y)`, one for each T in ``masks``.

    >>> pulled_back(Lift.quadratic(2), masks_of([(0, 1), (1, 2)], 4)).ravel()
    array([2, 0], dtype=uint64)
    """
    of_coordinate = masks_of(lift.subsets, lift.m)
    bits = np.zeros((len(masks), n_words(lift.m)), dtype=np.uint64)
    for rows, coordinates in members_in_rounds(masks):
        bits[rows] ^= of_coordinate[coordinates]
    return bits
