"""The search for the significant monomials among all of low degree: scans of the residual, and least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sparsact.hypercube import Masks, masks_of, n_subsets, n_words, sizes, subsets_of
from sparsact.kernels.monomial_scan import MOST_ROWS, MonomialTable, quantised, strongest_monomials
from sparsact.learners.points import unpack
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample
from sparsact.learners.sparse_fourier.term_selection import NEAREST, TermPool

Array = NDArray[np.float64]

KEPT, SCREENED = 4_000, 300_000  # candidates of a scan of all rows, and of a screen
SCREEN_ROWS: Final = 2_048
WORTH_SCREENING: Final = 2e11  # products of a scan: about a second
MOST_ROUNDS: Final = 30
NEAR: Final = 0.65  # share of the critical value at which a scan keeps a monomial
ALIAS, ALIASES = 0.1, 20_000  # least correlation, and the most aliases of a model
ALIAS_ROWS: Final = 4_096  # by which aliases are found


@dataclass(frozen=True)
class SearchOptions:
    """Parameters of a search; see :class:`sparsact.SparseFourierRegressor`."""

    degree: int
    significance: float
    max_terms: int
    certify: bool
    report: Callable[[str], None]
    worth_screening: float = WORTH_SCREENING


@dataclass(frozen=True)
class SearchResult:
    """Terms without the constant, least significant t by size, rounds, and whether a full scan found nothing more."""

    masks: Masks
    critical: Array
    n_rounds: int
    certified: bool


class TermSearch:
    """Rounds of: scan the residual, choose terms by least squares; until nothing changes."""

    def __init__(self, sample: IntegerSample, options: SearchOptions) -> None:
        self.sample, self.options = sample, options
        self.n, self.m = sample.points.n, sample.n_rows
        self.degree = min(options.degree, self.n)
        self.n_monomials = n_subsets(self.n, self.degree, 1)
        rows = min(self.m, MOST_ROWS)
        self.table = MonomialTable.of(sample.points[0:rows].columns, rows, self.degree)
        share = max(SCREEN_ROWS, self.m // 10) // 128 * 128
        worth = rows * self.n_monomials > options.worth_screening and self.m >= 2 * share
        self.screen_rows = share if worth else 0
        self.singles = masks_of(np.arange(self.n)[:, None], self.n)

    def critical(self, size: int) -> Array:
        """Least significant t of monomials with 0, 1, ..., d coordinates, in a model of this size; 0 for the constant.

        Bonferroni's, at half of the level. Monomials of each size share twice the level of the next smaller size.
        """
        level = self.options.significance / 4 * 2.0 ** np.arange(self.degree) / (2.0**self.degree - 1)
        return np.append(0.0, -stdtrit(max(1, self.m - size), level / self._by_size))

    @cached_property
    def _by_size(self) -> Array:
        """Number of monomials with 1, ..., d coordinates."""
        return np.array([float(comb(self.n, k)) for k in range(1, self.degree + 1)])

    def run(self) -> SearchResult:
        """Search."""
        model = np.zeros((1, n_words(self.n)), dtype=np.uint64)
        screening, certified = self.screen_rows > 0, False
        pool = TermPool(self.sample, model, 1, self.critical)
        for number in range(MOST_ROUNDS):
            residual = self.residual(model)
            found = self.screened(residual, number) if screening else self.scanned(residual)
            pool = TermPool(self.sample, self._pooled(model, found), len(model), self.critical)
            pool.select(self.options.max_terms)
            pool.polish(self.options.max_terms, 20 + 10 * len(pool.chosen))
            pool.retry(self.options.max_terms)
            chosen = pool.masks[pool.chosen]
            same = as_set(chosen) == as_set(model)
            what = "screen" if screening else "scan"
            self.options.report(f"round {number + 1}: {what}, {len(found)} candidates, {len(chosen) - 1} terms")
            model = chosen
            certified = same and not screening
            if certified or (same and not self.options.certify):
                break
            screening = self.screen_rows > 0 and not same
        return SearchResult(self.distinct(pool), self.critical(len(model)), number + 1, certified)

    def distinct(self, pool: TermPool) -> Masks:
        """Terms of the model, without terms that one or two other monomials might explain.

        A monomial that resembles missing ones is significant without being there; next to them it no longer is. That is
        tested at the other half of the level, divided by the number of terms.
        """
        terms = pool.masks[pool.chosen[1:]]
        level = self.options.significance / (4 * NEAREST * max(1, len(terms)))
        rarity = np.append(0.0, 2 * np.log(self._by_size))
        distinct = pool.beside_two_more(rarity) >= stdtrit(max(1, self.m - len(pool.chosen)), level) ** 2
        return np.ascontiguousarray(terms[distinct])

    def residual(self, model: Masks) -> Array:
        """The target less its least squares on the monomials of the model."""
        gram, means = self.sample.products(model, model), self.sample.means(model)
        values = self.sample.points.characters(model)
        return self.sample.target - values @ np.linalg.solve(gram, means)

    def scanned(self, residual: Array) -> Masks:
        """Monomials of largest correlation with a residual, by all rows."""
        q = quantised(residual[: self.table.n_rows])
        least = self._least(q, NEAR * self.critical(1).max())
        return strongest_monomials(self.table, q, KEPT, least, n_threads=self.sample.n_threads)[0]

    def screened(self, residual: Array, number: int) -> Masks:
        """The same by few rows, others in each round, and then by all rows for the terms that these leave."""
        blocks = max(1, (self.m - self.screen_rows) // 128)
        start = number * self.screen_rows // 128 % blocks * 128
        rows = slice(start, start + self.screen_rows)
        q = quantised(residual[rows])
        table = MonomialTable.of(self.sample.points[rows].columns, self.screen_rows, self.degree)
        masks, _ = strongest_monomials(table, q, SCREENED, self._least(q, 2.5), n_threads=self.sample.n_threads)
        means = np.abs(self.sample.ranking(masks, residual))
        best = np.argsort(-means, kind="stable")[:KEPT]
        strong: Masks = masks[
            best[means[best] > 0.5 * NEAR * self.critical(1).max() * residual.std() / np.sqrt(self.m)]
        ]
        return strong

    @staticmethod
    def _least(q: NDArray[np.int8], z: float) -> int:
        """Score of a correlation of z standard deviations."""
        return int(z * np.sqrt(np.sum(q.astype(np.float64) ** 2)))

    def _pooled(self, model: Masks, found: Masks) -> Masks:
        """Masks of the model, then of everything else that it may take."""
        others = np.concatenate([found, self.singles, self.aliases(model)])
        others = np.unique(others, axis=0)
        known = as_set(model)
        new = [i for i, mask in enumerate(others) if mask.tobytes() not in known]
        return np.ascontiguousarray(np.concatenate([model, others[new]]))

    def aliases(self, model: Masks) -> Masks:
        """Monomials of low degree that correlate with one of the model: their difference has a mean of some size.

        Looked for are differences of one or two coordinates.
        """
        strength = self._strength
        far, near = np.nonzero(np.triu(strength >= ALIAS))
        if not len(far):
            return model[:0]
        strongest = np.argsort(-strength[far, near], kind="stable")[:ALIAS_ROWS]
        found = []
        for mask, subset in zip(model[1:], subsets_of(model[1:]), strict=True):
            inside = np.array(subset)
            row, column = np.nonzero(strength[inside] >= ALIAS)
            one, other = np.r_[inside[row], far[strongest]], np.r_[column, near[strongest]]
            masks = mask ^ self.singles[one] ^ np.where((one != other)[:, None], self.singles[other], np.uint64(0))
            size = sizes(masks)
            some = np.flatnonzero((size > 0) & (size <= self.degree))
            order = np.argsort(-strength[one[some], other[some]], kind="stable")[: ALIASES // len(model)]
            found.append(masks[some[order]])
        return np.concatenate([model[:0], *found])

    @cached_property
    def _strength(self) -> Array:
        """Size of the mean of each product of two coordinates, by some of the rows; of one, on the diagonal."""
        rows = min(self.m, ALIAS_ROWS)
        signs = unpack(self.sample.points[0:rows]).astype(np.float32)
        products: Array = np.abs(signs.T @ signs) / rows
        np.fill_diagonal(products, np.abs(signs.mean(axis=0)))
        return products


def as_set(masks: Masks) -> set[bytes]:
    """Masks to compare."""
    return {mask.tobytes() for mask in masks}
