"""Thresholds and the tests next to other monomials, against their definitions."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import t as student

from sparsact.hypercube import characters, masks_of, subset_masks, subsets_of
from sparsact.learners.points import pack
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample
from sparsact.learners.sparse_fourier.search import SearchOptions, TermSearch
from sparsact.learners.sparse_fourier.term_selection import LEAST_NEW, MOST_CHANGES, NEAREST, SAME, TermPool

N, M = 6, 211
MODEL = [(), (1,), (0, 2), (1, 3, 4)]


def biased_rows(m, n, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((m, n)) < rng.uniform(0.2, 0.9, n), 1, -1).astype(np.int8)


def search(X, y, degree):
    sample = IntegerSample.of(pack(X, "signs"), y, rng=np.random.default_rng(0))
    return TermSearch(sample, SearchOptions(degree, 0.05, 50, True, lambda line: None))


def test_the_levels_of_all_monomials_add_up_to_half():
    X = biased_rows(47, 9, 0)
    found = search(X, X[:, 0] * 1.0, 4).critical(3)
    levels = [2 * student.sf(t, 47 - 3) for t in found[1:]]
    assert found[0] == 0
    assert sum(level * comb(9, k) for k, level in enumerate(levels, 1)) == pytest.approx(0.025)
    shares = [level * comb(9, k) for k, level in enumerate(levels, 1)]
    np.testing.assert_allclose(np.array(shares[1:]) / shares[:-1], 2)


def refitted(A, y, place, freedom, scale):
    """Square of the t of a column, with the noise of another fit, and what the others leave of it."""
    others = np.delete(A, place, axis=1)
    left = A[:, place] - others @ np.linalg.lstsq(others, A[:, place])[0]
    return (left @ y) ** 2 / (left @ left) / scale, left @ left


def test_terms_beside_any_two_others_by_refitting():
    """All pairs of the 22 monomials of size 1 and 2 that are not in the model, and a rarity for each size."""
    X = biased_rows(M, N, 1)
    y = characters(X, MODEL) @ [0.3, 1.0, -0.7, 0.5] + np.random.default_rng(2).standard_normal(M)
    every = [subset for subset in subsets_of(subset_masks(N, 2, 1)) if subset not in MODEL]
    assert len(every) <= NEAREST
    sample = IntegerSample.of(pack(X, "signs"), y, rng=np.random.default_rng(0))
    pool = TermPool(sample, masks_of_all(MODEL + every), len(MODEL), lambda size: np.full(4, 3.0))
    rarity = np.array([0.0, 1.5, 4.0, 7.5])
    A, target = characters(X, MODEL).astype(float), sample.target
    residual = target - A @ np.linalg.lstsq(A, target)[0]
    scale = residual @ residual / (M - len(MODEL))
    due = []
    for place in range(1, len(MODEL)):
        own, least = refitted(A, target, place, M, scale)[1], np.inf
        for size in (1, 2):
            for others in combinations(every, size):
                B = np.column_stack([A, characters(X, list(others))])
                t2, left = refitted(B, target, place, M, scale)
                rare = max(0.0, sum(rarity[len(other)] for other in others) - rarity[len(MODEL[place])])
                if left > SAME * own and np.linalg.cond(B) < 0.1 / LEAST_NEW:
                    least = min(least, t2 + rare)
        due.append(least)
    np.testing.assert_allclose(pool.beside_two_more(rarity), due, rtol=1e-6)


def masks_of_all(subsets):
    masks = np.zeros((len(subsets), 1), dtype=np.uint64)
    for row, subset in zip(masks, subsets, strict=True):
        if subset:
            row[:] = masks_of(np.array([subset]), N)[0]
    return masks


def test_trials_without_a_term_end_where_rows_are_copies():
    """Copies of rows, with their noise, make everything significant and everything resemble something."""
    rng = np.random.default_rng(3)
    X, y = biased_rows(90, 20, 4)[rng.integers(0, 90, 900)], rng.standard_normal(900)
    copies = rng.integers(0, 90, 900)
    X, y = biased_rows(90, 20, 4)[copies], rng.standard_normal(90)[copies]
    sample = IntegerSample.of(pack(X, "signs"), y, rng=rng)
    pool = TermPool(sample, masks_of_all([(), *subsets_of(subset_masks(20, 2, 1))]), 1, lambda size: np.full(3, 3.0))
    pool.select(100)
    looks, polish = [], pool.polish
    pool.polish = lambda most, most_changes: looks.append(polish(most, most_changes)) or looks[-1]
    pool.retry(100)
    assert len(pool.chosen) > 50
    assert sum(looks) <= MOST_CHANGES
