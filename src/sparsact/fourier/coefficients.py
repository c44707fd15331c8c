"""Fourier coefficients: a dense table of all 2**n subsets, or a list of nonzero ones; weights by degree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier.subset_order import strongest, subset_order
from sparsact.fourier.transform import walsh_hadamard
from sparsact.hypercube import WORD, Masks, Subset, masks_of, members_in_rounds, n_subsets, n_words, sizes, subsets_of
from sparsact.kernels import evaluate

Array = NDArray[np.float64]
Blocks = Callable[[], Iterable[tuple[NDArray[np.intp], Array]]]  # sizes of subsets, and their coefficients
MOST_PARTS: Final = 1 << 24  # of a product: minutes
LARGE: Final = 2.0**400  # coefficients up to it, and from 1 / it on, have squares whose sums are floats


@dataclass(frozen=True, eq=False)
class Weights:
    r"""Weights :math:`W_d = w_d\, 4^{e_d}` of degrees 0, ..., n, where :math:`w_d` is a float even if W is none."""

    scaled: Array
    exponents: NDArray[np.intp]

    @classmethod
    def of(cls, blocks: Blocks, n: int) -> Weights:
        """Weights of coefficients in blocks; each block is read two or three times."""
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


BLOCK: Final = 2**16  # coefficients looked at together: they and their sizes stay in the cache


@dataclass(frozen=True, eq=False)
class DenseCoefficients:
    """Table of coefficients in table order, read-only. Every method works in blocks and leaves the table unchanged."""

    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.coefficients.setflags(write=False)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.coefficients.size.bit_length() - 1

    def masks(self) -> Masks:
        """Masks of the stored subsets (N, words)."""
        return np.arange(self.coefficients.size, dtype=np.uint64)[:, None]

    def coefficient(self, subset: Subset) -> float:
        """Coefficient of a sorted subset of valid coordinates."""
        return float(self.coefficients[sum(1 << i for i in subset)])

    def weights(self) -> Weights:
        """Sums of squared coefficients of each size."""
        return Weights.of(
            lambda: ((high + low_sizes, block) for high, low_sizes, block in self._blocks(self.coefficients)), self.n
        )

    def influences(self) -> NDArray[np.float64]:
        """Folds the squares, highest coordinate first: ``2**(n + 1)`` additions for all coordinates together."""
        with np.errstate(over="ignore"):  # a sum with an infinite square is infinite
            return membership_sums(self.coefficients * self.coefficients)

    def degree(self, tolerance: float) -> int:
        """Largest size of a coefficient above ``tolerance`` in magnitude, else 0."""
        degree = 0
        for high, low_sizes, block in self._blocks(self.coefficients):
            degree = max(degree, high + int(low_sizes[np.abs(block) > tolerance].max(initial=-high)))
        return degree

    def strongest(self, k: int, min_degree: int) -> tuple[Masks, NDArray[np.float64]]:
        """Masks and coefficients of the k strongest, strongest first."""
        numbers = strongest(self.coefficients, subset_sizes(self.n), _masks_of_numbers, k, min_degree)
        return _masks_of_numbers(numbers), self.coefficients[numbers]

    def scaled(self, factors: NDArray[np.float64]) -> DenseCoefficients:
        """Each coefficient times ``factors[|S|]``."""
        scaled = self.coefficients.copy()
        for high, low_sizes, block in self._blocks(scaled):
            block *= factors[high + low_sizes]
        return DenseCoefficients(scaled)

    def truncated(self, degree: int) -> DenseCoefficients:
        """Only the coefficients of size at most ``degree``."""
        low = self.coefficients.copy()
        for high, low_sizes, block in self._blocks(low):
            block[high + low_sizes > degree] = 0.0
        return DenseCoefficients(low)

    def above(self, threshold: float) -> SparseCoefficients:
        """A list of the coefficients whose magnitude is above ``threshold``."""
        kept = np.flatnonzero(np.abs(self.coefficients) > threshold)
        return SparseCoefficients.summed(self.n, _masks_of_numbers(kept), self.coefficients[kept])

    def restricted(self, signs: dict[int, int]) -> DenseCoefficients:
        """On the other coordinates, with these signs fixed."""
        table = self.coefficients
        for i in sorted(signs, reverse=True):  # from the top, so that lower coordinates keep their place
            halves = table.reshape(-1, 2, 2**i)
            table = (halves[:, 0] + signs[i] * halves[:, 1]).ravel()
        return DenseCoefficients(table.copy() if table is self.coefficients else table)

    def rebased(self, shift: Array, scale: Array) -> DenseCoefficients:
        r"""The same function in coordinates y with :math:`x_i = \text{shift}_i + \text{scale}_i\, y_i`; both (n,)."""
        table = self.coefficients.copy()
        for i in range(self.n):
            halves = table.reshape(-1, 2, 2**i)
            halves[:, 0] += shift[i] * halves[:, 1]
            halves[:, 1] *= scale[i]
        return DenseCoefficients(table)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values at all points, in table order; made once and kept."""
        values = walsh_hadamard(self.coefficients, normalize=False)
        values.setflags(write=False)
        return values

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (m,) at signs (m, n)."""
        numbers = (X < 0) @ (1 << np.arange(self.n, dtype=np.int64))
        return self.values[numbers]

    def __add__(self, other: DenseCoefficients) -> DenseCoefficients:
        return DenseCoefficients(self.coefficients + other.coefficients)

    def __mul__(self, factor: float) -> DenseCoefficients:
        return DenseCoefficients(self.coefficients * factor)

    def _blocks(self, table: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Views of ``table``, each with the size of its high coordinates and the sizes of its low ones."""
        blocks = table.reshape(-1, min(BLOCK, table.size))
        sizes = subset_sizes(blocks.shape[1].bit_length() - 1).astype(np.intp)
        for number, block in enumerate(blocks):
            yield number.bit_count(), sizes, block


def subset_sizes(n: int) -> NDArray[np.uint8]:
    """Number of coordinates in each of the 2**n subsets, in table order, one byte each.

    >>> subset_sizes(3)
    array([0, 1, 1, 2, 1, 2, 2, 3], dtype=uint8)
    """
    sizes = np.zeros(2**n, dtype=np.uint8)
    for i in range(n):
        np.add(sizes[: 2**i], 1, out=sizes[2**i : 2 ** (i + 1)])
    return sizes


def membership_sums(table: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Sums :math:`\sum_{S \ni i} t_S` of a table (2**n,) over the subsets that hold each coordinate, shape (n,).

    >>> membership_sums(np.array([7.0, 1.0, 2.0, 4.0]))
    array([5., 6.])
    """
    sums = np.zeros(table.size.bit_length() - 1)
    for i in reversed(range(len(sums))):
        without, holding = table[: 2**i], table[2**i :]
        sums[i] = holding.sum()
        table = without + holding
    return sums


def _masks_of_numbers(numbers: NDArray[np.intp]) -> Masks:
    return numbers.astype(np.uint64)[:, None]


@dataclass(frozen=True, eq=False)
class SparseCoefficients:
    """N distinct masks (N, words), by size, then lexicographically, and a coefficient for each; read-only."""

    n: int
    stored: Masks
    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.stored.setflags(write=False)
        self.coefficients.setflags(write=False)

    @staticmethod
    def summed(n: int, masks: Masks, coefficients: NDArray[np.float64]) -> SparseCoefficients:
        """From masks in any order; the coefficients of equal masks add up."""
        order = subset_order(masks)
        masks = masks[order]
        first = np.ones(len(masks), dtype=bool)
        first[1:] = (masks[1:] != masks[:-1]).any(axis=1)
        totals = np.add.reduceat(coefficients[order], np.flatnonzero(first)) if len(masks) else coefficients.copy()
        return SparseCoefficients(n, masks[first], totals)

    def masks(self) -> Masks:
        """Masks of the stored subsets (N, words)."""
        return self.stored

    def coefficient(self, subset: Subset) -> float:
        """Coefficient of a sorted subset of valid coordinates."""
        equal = (self.stored == masks_of([subset], self.n)).all(axis=1)
        return float(self.coefficients[equal].sum())

    def weights(self) -> Weights:
        """Sums of squared coefficients of each size."""
        return Weights.of(lambda: [(sizes(self.stored).astype(np.intp), self.coefficients)], self.n)

    def influences(self) -> NDArray[np.float64]:
        """Takes as many rounds as the largest subset has coordinates, whatever n."""
        influences = np.zeros(self.n)
        with np.errstate(over="ignore"):  # a sum with an infinite square is infinite
            squares = self.coefficients**2
        for rows, coordinates in members_in_rounds(self.stored):
            influences += np.bincount(coordinates, weights=squares[rows], minlength=self.n)
        return influences

    def degree(self, tolerance: float) -> int:
        """Largest size of a coefficient above ``tolerance`` in magnitude, else 0."""
        return int(sizes(self.stored[np.abs(self.coefficients) > tolerance]).max(initial=0))

    def strongest(self, k: int, min_degree: int) -> tuple[Masks, NDArray[np.float64]]:
        """Masks and coefficients of the k strongest, strongest first."""
        rows = strongest(self.coefficients, sizes(self.stored), self.stored.__getitem__, k, min_degree)
        return self.stored[rows], self.coefficients[rows]

    def scaled(self, factors: NDArray[np.float64]) -> SparseCoefficients:
        """Each coefficient times ``factors[|S|]``."""
        return SparseCoefficients(self.n, self.stored, self.coefficients * factors[sizes(self.stored)])

    def truncated(self, degree: int) -> SparseCoefficients:
        """Only the coefficients of size at most ``degree``."""
        return self._rows(sizes(self.stored) <= degree)

    def above(self, threshold: float) -> SparseCoefficients:
        """Only the coefficients above ``threshold`` in magnitude."""
        return self._rows(np.abs(self.coefficients) > threshold)

    def restricted(self, signs: dict[int, int]) -> SparseCoefficients:
        """On the other coordinates, with these signs fixed."""
        negative = masks_of([[i for i, sign in signs.items() if sign < 0]], self.n)
        signed = np.where(sizes(self.stored & negative) % 2, -self.coefficients, self.coefficients)
        free = np.setdiff1d(np.arange(self.n), list(signs))
        return SparseCoefficients.summed(len(free), _only(self.stored, self.n, free), signed)

    def rebased(self, shift: Array, scale: Array) -> SparseCoefficients:
        r"""The same function in coordinates y with :math:`x_i = \text{shift}_i + \text{scale}_i\, y_i`; both (n,)."""
        rows, masks, factors = self.expansion(shift, scale)
        return SparseCoefficients.summed(self.n, masks, self.coefficients[rows] * factors)

    def expansion(self, shift: Array, scale: Array) -> tuple[NDArray[np.intp], Masks, Array]:
        """The products of :meth:`rebased` that each stored one becomes: its row, their subsets, and their factors."""
        rows, masks, factors = [np.empty(0, dtype=np.intp)], [self.stored[:0]], [np.empty(0)]
        for having, members, columns in self.parts(0 if shift.any() else self.n, self.n):
            kept = np.isin(np.arange(members.shape[1]), columns)
            factor = shift[members[:, ~kept]].prod(axis=1) * scale[members[:, kept]].prod(axis=1)
            there = np.flatnonzero(factor)
            rows.append(having[there])
            masks.append(masks_of(members[there][:, kept], self.n))
            factors.append(factor[there])
        return np.concatenate(rows), np.concatenate(masks), np.concatenate(factors)

    def parts(self, least: int, most: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], tuple[int, ...]]]:
        """Rows of each size s, their members (N, s), and every choice of ``least`` (at most s) to ``most`` of these."""
        n_members = sizes(self.stored)
        for s in np.unique(n_members).tolist():
            if n_subsets(s, most, min(s, least)) > MOST_PARTS:
                raise ValueError(f"a product of {s} coordinates has too many subsets to list; truncate the spectrum.")
            rows = np.flatnonzero(n_members == s)
            members = np.array(subsets_of(self.stored[rows]), dtype=np.intp).reshape(len(rows), s)
            for t in range(min(s, least), min(s, most) + 1):
                for columns in combinations(range(s), t):
                    yield rows, members, columns

    def to_dense(self) -> DenseCoefficients:
        """The same as a table of all ``2**n``."""
        table = np.zeros(2**self.n)
        table[self.stored[:, 0].astype(np.intp)] = self.coefficients
        return DenseCoefficients(table)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (m,) at signs (m, n)."""
        points = np.ascontiguousarray(X, dtype=np.float64)
        return evaluate(points, self.stored, self.coefficients[:, None])[:, 0]

    def __add__(self, other: SparseCoefficients) -> SparseCoefficients:
        if np.array_equal(self.stored, other.stored):
            return SparseCoefficients(self.n, self.stored, self.coefficients + other.coefficients)
        masks = np.concatenate([self.stored, other.stored])
        return SparseCoefficients.summed(self.n, masks, np.concatenate([self.coefficients, other.coefficients]))

    def __mul__(self, factor: float) -> SparseCoefficients:
        return SparseCoefficients(self.n, self.stored, self.coefficients * factor)

    def _rows(self, kept: NDArray[np.bool_]) -> SparseCoefficients:
        return SparseCoefficients(self.n, self.stored[kept], self.coefficients[kept])


def _only(masks: Masks, n: int, free: NDArray[np.intp]) -> Masks:
    """Masks of the ``free`` coordinates alone, renumbered in order."""
    number = np.full(n, -1)
    number[free] = np.arange(len(free))
    kept = np.zeros((len(masks), n_words(len(free))), dtype=np.uint64)
    for rows, coordinates in members_in_rounds(masks):
        new = number[coordinates]
        rows, new = rows[new >= 0], new[new >= 0]
        kept[rows, new // WORD] |= np.uint64(1) << (new % WORD).astype(np.uint64)
    return kept
