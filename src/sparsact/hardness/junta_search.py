r"""Relevant variables of a junta, from examples: by correlations, or by a polynomial over GF(2).

A function with values +-1 of k bits has coefficients that are multiples of :math:`2^{1 - k}`; so an estimate within
:math:`2^{-k}` tells which are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hardness.answers import hoeffding_samples
from sparsact.hardness.elimination import solve_packed
from sparsact.hypercube import WORD, Masks, n_subsets, n_words, subset_masks, subsets_of
from sparsact.learners.points import Points


@dataclass
class Work:
    """What a search has cost.

    Attributes
    ----------
    correlations : int
        Subsets whose correlation with the labels was taken.
    unknowns : int
        Unknowns of the largest linear system solved.
    word_operations : int
        Words of 64 bits combined, by correlations and elimination together.
    """

    correlations: int = 0
    unknowns: int = 0
    word_operations: int = 0


def correlated_variables(points: Points, k: int, order: int, work: Work) -> list[int]:
    """Variables of all subsets of exactly this order whose coefficient, in a function of k variables, is not 0.

    The last column of ``points`` holds the labels.
    """
    n, m = points.n - 1, points.n_rows
    everything = np.full((1, points.columns.shape[1]), ~np.uint64(0))
    found: set[int] = set()
    for masks in _with_label(n, order):
        odd = kernels.parity_counts(points.columns, everything, masks)[0]
        heavy = np.abs(m - 2 * odd) >= m * 0.5**k
        found.update(i for subset in subsets_of(masks[heavy]) for i in subset if i < n)
        work.correlations += len(masks)
        work.word_operations += len(masks) * points.columns.shape[1]
    return sorted(found)


def _with_label(n: int, order: int) -> Iterator[Masks]:
    """Masks of all subsets of n coordinates of one size, each with the label n added; by their last coordinate."""
    for last in range(order - 1, n):
        below = subset_masks(last, order - 1, order - 1)
        masks = np.zeros((len(below), n_words(n + 1)), dtype=np.uint64)
        masks[:, : below.shape[1]] = below
        for i in (last, n):
            masks[:, i // WORD] |= np.uint64(1) << np.uint64(i % WORD)
        yield masks


def polynomial_variables(points: Points, degree: int, chance: float, work: Work) -> list[int]:
    """Variables of the polynomial over GF(2) of this degree that has the labels (the last column of ``points``).

    Raises
    ------
    InconsistentLabelsError
        If no polynomial of this degree has them.
    ValueError
        If several have, which for uniform points and enough rows happens with at most this ``chance``.
    """
    n = points.n - 1
    rows = points.between(0, -(-polynomial_samples(n, degree, chance) // WORD) * WORD)
    monomials = subsets_of(subset_masks(n, degree))
    columns = np.stack([np.bitwise_and.reduce(rows.columns[list(M)], axis=0) for M in monomials])
    columns[0] = _every_row(rows)  # the empty monomial is 1
    solution = solve_packed(np.concatenate([columns, rows.columns[n:]]), rows.n_rows)
    work.unknowns = max(work.unknowns, len(monomials))
    work.word_operations += solution.word_operations
    if not solution.unique:
        raise ValueError(
            f"{rows.n_rows} examples leave several polynomials of degree {degree} in {n} variables; pass more examples."
        )
    return sorted({i for M, bit in zip(monomials, solution.bits, strict=True) if bit for i in M})


def _every_row(points: Points) -> NDArray[np.uint64]:
    """A column of ones, padding bits 0."""
    ones, _ = kernels.pack_columns(np.ones((points.n_rows, 1), dtype=np.uint8), 0, 1)
    return np.asarray(ones[0])


# ---- how many examples, and which order ----


def correlation_samples(n: int, k: int, chance: float) -> int:
    """Uniform examples at which no correlation of a function of k among n variables is misjudged, but by ``chance``."""
    return hoeffding_samples(0.5**k, chance / n_subsets(n, k, 1))


def polynomial_samples(n: int, degree: int, chance: float) -> int:
    r"""Uniform examples that determine a polynomial over GF(2) of n bits, but by ``chance``.

    Another polynomial of degree e differs at a share of at least :math:`2^{-e}` of all points, so that it agrees at m
    of them with probability at most :math:`(1 - 2^{-e})^m`; there are :math:`2^D` with D monomials.
    """
    if degree == 0:
        return 1
    return ceil((n_subsets(n, degree) * log(2) - log(chance)) / -log1p(-(0.5**degree)))


def balanced_order(n: int, k: int, chance: float) -> int:
    r"""Order d of correlations, leaving degree k - d to elimination, at which both together cost the fewest words.

    As n grows it tends to :math:`\frac{\omega}{\omega + 1} k` with :math:`\omega = 3`, the exponent of our elimination.
    """
    words = correlation_samples(n, k, chance) / WORD

    def cost(order: int) -> float:
        unknowns, rows = n_subsets(n, k - order), polynomial_samples(n, k - order, chance)
        return n_subsets(n, order, 1) * words + unknowns * rows / 2 * (unknowns + 1) / WORD

    return min(range(1, k), key=cost, default=1)
