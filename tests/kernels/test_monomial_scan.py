from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsact import kernels
from sparsact.hypercube import subsets_of
from sparsact.kernels import dispatch
from sparsact.kernels.monomial_scan import MonomialTable, quantised, strongest_monomials
from sparsact.learners.points import pack

pytestmark = pytest.mark.usefixtures("backend")


def signs(m: int, n: int, seed: int) -> np.ndarray:
    return 1 - 2 * np.random.default_rng(seed).integers(0, 2, (m, n), dtype=np.int8)


def table(X: np.ndarray, degree: int) -> MonomialTable:
    return MonomialTable.of(pack(X, "signs").columns, len(X), degree)


def score(X: np.ndarray, q: np.ndarray, subset: tuple[int, ...]) -> int:
    """By the definition: sums of four rows saturate at 127, of 128 rows in 8 bits, of all in 16."""
    total, products = 0, X[:, list(subset)].prod(axis=1) * q.astype(int)
    for block in range(0, len(q), 128):
        part = 0
        for four in range(block, min(block + 128, len(q)), 4):
            of_four = max(-127, min(127, int(products[four : four + 4].sum())))
            part = max(-128, min(127, part + of_four))
        total = max(-(2**15), min(2**15 - 1, total + part))
    return min(abs(total), 2**15 - 1)


def all_subsets(n: int, degree: int, smallest: int) -> list[tuple[int, ...]]:
    return [subset for size in range(smallest, degree + 1) for subset in combinations(range(n), size)]


# Rows that fill neither a lookup of 4, nor a sum of 128; columns that fill no tile; pairs as columns from degree 3 on.
@pytest.mark.parametrize(
    ("n", "m", "degree"),
    [(5, 1001, 1), (70, 129, 2), (7, 37, 3), (9, 131, 4), (103, 46, 2), (6, 35, 6), (1, 5, 2), (3, 1, 2), (2, 3, 3)],
)
def test_every_score_matches_its_definition(n, m, degree):
    X, q = signs(m, n, seed=n), np.random.default_rng(m).integers(-11, 12, m).astype(np.int8)
    smallest = 2 if degree > 2 else 1  # pairs as columns have no monomial of size 1
    due = {subset: score(X, q, subset) for subset in all_subsets(n, degree, smallest)}
    masks, scores = strongest_monomials(table(X, degree), q, 10_000)
    found = dict(zip(subsets_of(masks), scores.tolist(), strict=True))
    assert found == {subset: value for subset, value in due.items() if value > 0}
    assert (np.diff(scores) <= 0).all()


@pytest.mark.parametrize("size", [11, 31])
def test_sums_saturate_alike_everywhere(size):
    """A target that is a monomial, so that its sums of 128 rows are past 8 bits, and of all rows past 16."""
    n, m = 4, 128 * 260 + 30
    X = signs(m, n, seed=1)
    q = (size * X[:, [0, 2, 3]].prod(axis=1)).astype(np.int8)
    masks, scores = strongest_monomials(table(X, 3), q, 3)
    assert subsets_of(masks[:1]) == [(0, 2, 3)]
    assert scores.tolist() == [score(X, q, subset) for subset in subsets_of(masks)]
    assert scores[0] == 2**15 - 1


@pytest.mark.parametrize(("n", "degree"), [(23, 4), (131, 2)])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_strongest_are_kept_whatever_comes_first(n, degree, n_threads):
    """Also where many are equal (few rows), and where a scan takes many calls: the same as sorting all."""
    X, q = signs(61, n, seed=n), np.random.default_rng(2).integers(-3, 4, 61).astype(np.int8)
    masks, scores = strongest_monomials(table(X, degree), q, 10**6, 5)
    for keep in (1, 17, 200):
        some, of_some = strongest_monomials(table(X, degree), q, keep, 5, n_threads=n_threads, step=16)
        np.testing.assert_array_equal(some, masks[:keep])
        np.testing.assert_array_equal(of_some, scores[:keep])
    assert scores.min() >= 5


def test_equal_scores_come_by_number_on_every_backend():
    X, q = signs(40, 15, seed=3), np.ones(40, dtype=np.int8)
    with kernels.using("reference"):
        due = strongest_monomials(table(X, 3), q, 77)
    for found, wanted in zip(strongest_monomials(table(X, 3), q, 77), due, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_an_interrupt_ends_a_scan_between_two_calls(monkeypatch):
    calls, scan = [], dispatch.chosen.scan_monomials

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return scan(*arguments)

    monkeypatch.setattr(dispatch.chosen, "scan_monomials", interrupted)
    X = signs(50, 30, seed=4)
    with pytest.raises(KeyboardInterrupt):
        strongest_monomials(table(X, 4), np.ones(50, dtype=np.int8), 9, step=16)
    assert len(calls) == 3


def test_a_residual_is_rounded_to_four_bits():
    values = np.random.default_rng(5).standard_normal(9_973)
    values[[3, 77]] = [6.0, -6.0]
    q = quantised(values)
    assert (q[3], q[77], np.abs(q).max()) == (11, -11, 11)
    assert np.corrcoef(q, values)[0, 1] > 0.99
    assert not quantised(np.zeros(7)).any()
    assert len(quantised(np.zeros(0))) == 0
