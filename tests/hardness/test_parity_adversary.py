"""The lower-bound adversary: always legal for what is still possible, and never generous."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.hardness import ParityAdversary, QueryBudgetError, low_degree_by_queries, statistical_queries_needed
from sparsact.hypercube import characters, points, subset_masks, subsets_of
from sparsact.lift import Lift


def random_queries(m, count, seed):
    """Queries that lean towards a random parity, so that some exclude a few, and to one side whatever the label."""
    rng = np.random.default_rng(seed)
    Y = points(m)
    for _ in range(count):
        S = tuple(np.flatnonzero(rng.integers(2, size=m)).tolist())
        table = np.clip(0.7 * characters(Y, [S])[:, 0] + rng.normal(scale=0.3, size=2**m), -1, 1)
        offset = rng.uniform(-0.6, 0.6) + rng.uniform(-0.2, 0.2, 2**m)

        def phi(X, y, table=table, offset=offset):
            places = (X[:, :m] < 0) @ (1 << np.arange(m))
            return np.clip(table[places] * y + offset[places], -1, 1)

        yield phi


@pytest.mark.parametrize("tolerance", [0.15, 0.4, 1.0])
def test_every_answer_is_legal_for_every_parity_that_is_left(tolerance):
    m = 5
    adversary = ParityAdversary(m, tolerance)
    Y = points(m)
    labels = characters(Y, subsets_of(np.arange(2**m, dtype=np.uint64)[:, None]))
    asked = []
    for phi in random_queries(m, 60, seed=int(100 * tolerance)):
        asked.append((phi, adversary.query(phi)))
        assert adversary.possible.any()
    for S in np.flatnonzero(adversary.possible):
        for phi, answer in asked:
            assert abs(answer - phi(Y, labels[:, S]).mean()) <= tolerance + 1e-12


@pytest.mark.parametrize("tolerance", [0.2, 0.5])
def test_a_query_excludes_at_most_one_over_tolerance_squared(tolerance):
    """While more than one parity is legal for the answer under random labels, which is what is counted."""
    m = 7
    adversary = ParityAdversary(m, tolerance)
    before = 2**m
    for phi in random_queries(m, 25, seed=9):
        adversary.query(phi)
        left = int(adversary.possible.sum())
        if left <= 1 / tolerance**2:
            break
        assert before - left <= 1 / tolerance**2
        before = left


def test_characters_are_told_only_when_nothing_else_is_left():
    adversary = ParityAdversary(4, 0.3, budget=16)
    answers = adversary.correlations(subset_masks(4, 4))
    assert answers.tolist() == [0.0] * 15 + [1.0]
    assert subsets_of(np.flatnonzero(adversary.possible)[:, None].astype(np.uint64)) == [(0, 1, 2, 3)]
    with pytest.raises(QueryBudgetError):
        adversary.correlations([(0,)])
    assert ParityAdversary(3, 1.0).correlations(subset_masks(3, 3)).tolist() == [0.0] * 8


def test_an_answer_at_the_very_tolerance_tells_nothing():
    adversary = ParityAdversary(3, 0.5)
    adversary.possible[:] = False
    adversary.possible[5] = True
    assert adversary.query(lambda X, y: 0.5 * y * X[:, 0] * X[:, 2] + 0.25) == 0.25
    assert adversary.possible.sum() == 1


def test_one_by_one_characters_are_the_same_queries():
    together, apart = ParityAdversary(4, 0.3), ParityAdversary(4, 0.3)
    subsets = subsets_of(subset_masks(4, 4))[::-1]
    answers = together.correlations(subsets)
    for subset, answer in zip(subsets, answers, strict=True):
        one = apart.correlation(lambda X, subset=subset: X[:, list(subset)].prod(axis=1))
        assert one == pytest.approx(answer, abs=1e-12)
    assert np.array_equal(together.possible, apart.possible)


@pytest.mark.parametrize("lift", [None, Lift.quadratic(6)])
def test_no_low_degree_learner_outwits_it(lift):
    """At degree 2 of 6 bits every coefficient is 0, and exactly the parities of higher degree are left."""
    adversary = ParityAdversary(6, 0.1, lift)
    h = low_degree_by_queries(adversary, 2 if lift is None else 1)
    assert h.coefficients.size == 0
    assert adversary.possible.sum() == 64 - 22
    assert adversary.ledger.n_queries == (22 if lift is None else 37)


def test_the_count_of_queries_that_theorem_14_states():
    assert statistical_queries_needed(12, 0.5) == 0.25 * (4096 - 9)
    with pytest.raises(ValueError, match="must lie between 1 and 16"):
        ParityAdversary(17, 0.1)
    with pytest.raises(ValueError, match="the function has 3 coordinates and the lift takes 4"):
        ParityAdversary(3, 0.1, Lift.quadratic(4))
