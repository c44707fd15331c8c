"""What is no sign, no integer or no bounded query is refused, and nothing that a caller does changes what is kept."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.hardness import (
    LearningWithRounding,
    LiftedFunction,
    MembershipOracle,
    ParityAdversary,
    QueryBudgetError,
    Residues,
    RoundingReduction,
    StatisticalQueryOracle,
    consistent_secrets,
    heavy_coefficients,
    junta_samples,
    learn_junta,
    learn_parity,
    low_degree_by_queries,
    parity_contest,
    parity_distribution,
    secret_modulo,
    solve_binary,
    solve_modulo,
    statistical_queries_needed,
)
from sparsact.hypercube import subset_masks

X = np.random.default_rng(0).choice([1, -1], (1500, 7))
Y = X[:, 0] * X[:, 4]
LEARNERS = [lambda X, y: learn_parity(X, y).subset, lambda X, y: learn_junta(X, y, 2).variables]


@pytest.mark.parametrize("learn", LEARNERS)
def test_signs_of_any_dtype(learn):
    for dtype in (np.int8, np.int16, np.float16, np.float32, object):
        assert learn(X.astype(dtype), Y.astype(dtype)) == (0, 4)
    frozen = np.asfortranarray(X)
    frozen.setflags(write=False)
    assert learn(frozen[::-1], Y[::-1]) == (0, 4)


@pytest.mark.parametrize("learn", LEARNERS)
def test_no_signs(learn):
    for points, labels, message in [
        (1j * X, Y, "`X` must be real"),
        (X, 1j * Y, "`y` must be real"),
        (X, np.ones(len(X), dtype=bool), r"labels \+1 and -1"),
        (X > 0, Y, "holds bits"),
        (np.where(X > 0, np.nan, -1), Y, "must hold signs"),
        (X, np.where(Y > 0, np.nan, -1), r"labels \+1 and -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            learn(points, labels)


def test_systems_of_strange_numbers():
    assert solve_modulo([[1]], np.array([2**64 - 1], dtype=np.uint64), 7).values == (2**64 - 1) % 7
    assert solve_modulo(np.eye(2, dtype=np.int8), [-1, 3.0], 2**31 - 1).values.tolist() == [2**31 - 2, 3]
    for side in (np.inf, np.nan, 1e300, 0.5, 1j, 2**70):
        with pytest.raises(ValueError, match="must hold integers"):
            solve_modulo([[1]], [side], 7)
    for dtype in (np.float16, np.uint64, np.int16, object):
        assert solve_binary(np.eye(3, dtype=dtype), [1, 0, 1]).values.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="must be real"):
        solve_binary(1j * np.eye(3), [1, 0, 1])
    assert solve_binary(np.zeros((0, 5)), []).rank == solve_modulo(np.zeros((0, 5)), [], 3).rank == 0


def overwriting(points, labels):
    points *= 0
    return labels


@pytest.mark.parametrize("answers", ["exact", "adversarial", "sampling"])
def test_a_query_cannot_change_the_distribution(answers):
    table = np.array([1.0, -1.0, 1.0, -1.0])
    for distribution in (LiftedFunction(lambda Y: table, 2), LearningWithRounding([1], 2, 2)):
        oracle = StatisticalQueryOracle(distribution, 0.3, answers, rng=np.random.default_rng(1))
        if answers != "sampling":  # sampled points are fresh, and nobody's
            with pytest.raises(ValueError, match="read-only"):
                oracle.query(overwriting)
    assert table.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        ParityAdversary(3, 0.1).query(overwriting)


@pytest.mark.parametrize("answers", ["exact", "adversarial", "sampling"])
def test_correlations_need_labels_within_one(answers):
    """Else the product with a character is no legal query."""
    for distribution in (LiftedFunction([2.0, 0.0], 1), LearningWithRounding([1, 2], 3, 5)):
        oracle = StatisticalQueryOracle(distribution, 0.3, answers, rng=np.random.default_rng(1))
        with pytest.raises(ValueError, match=r"values in \[-1, 1\]"):
            oracle.correlations([(0,)])
        with pytest.raises(ValueError, match=r"real values"):
            oracle.query(lambda X, y: 1j * y)
    wide = LiftedFunction(parity_distribution((0, 40), 50).spectrum * 1.1, 50)
    with pytest.raises(ValueError, match=r"values in \[-1, 1\]"):
        StatisticalQueryOracle(wide, 0.3, "exact").correlations([(0,)])
    assert LearningWithRounding([1, 2], 3, 5).largest_label == 2


@pytest.mark.grid
def test_exact_correlations_on_many_coordinates():
    """65536 points of 256 coordinates: one product a character, not one matrix of all."""
    problem = LearningWithRounding([3, 1, 2, 1], 2, 16)
    h = low_degree_by_queries(StatisticalQueryOracle(problem, 0.1, "exact"), 1)
    assert h[()] == pytest.approx(0.5)


def test_what_would_take_forever():
    parity = parity_distribution((0, 1), 3)
    with pytest.raises(ValueError, match="examples, at most 1e\\+09 are drawn: raise `tolerance`"):
        StatisticalQueryOracle(parity, 1e-6, rng=np.random.default_rng(0))
    for n, p in ((2000, 600), (300, 300), (64, 31)):
        with pytest.raises(ValueError, match=r"at most 30, as more than 4\*\*p examples"):
            junta_samples(n, p)
    assert junta_samples(64, 30) > 4**30
    with pytest.raises(ValueError, match=r"be at least 0\.001"):
        heavy_coefficients(MembershipOracle(lambda X: X[:, 0], 3), 1e-9, rng=np.random.default_rng(0))
    oracle = MembershipOracle(lambda X: X[:, 0], 3, budget=10**6)
    with pytest.raises(QueryBudgetError):
        heavy_coefficients(oracle, 0.01, rng=np.random.default_rng(0))
    assert oracle.ledger.n_queries == 0  # a round is asked in full or not at all


def test_bad_budgets_and_counts():
    for budget in (2.5, np.nan, "5"):
        with pytest.raises(TypeError, match="integer"):
            MembershipOracle(lambda X: X[:, 0], 3, budget=budget)
    assert statistical_queries_needed(3, 0.5) == 0
    for m, tolerance, message in [(0, 0.1, "`m` must lie"), (2000, 0.1, "`m` must lie"), (5, -1, "`tolerance` must")]:
        with pytest.raises(ValueError, match=message):
            statistical_queries_needed(m, tolerance)
    rows = parity_contest(1, (0,), rng=np.random.default_rng(0), n_examples=50)
    assert {row.learner for row in rows if row.inputs == "lifted"} >= {"low degree, d = 1", "elimination"}


def test_bad_samples_of_rounding():
    none = np.zeros((0, 2), dtype=int)
    assert consistent_secrets(none, [], 2, 5).shape == (25, 2)
    assert secret_modulo(none, [], 2, 4).rank == 0
    for recover in (consistent_secrets, secret_modulo):
        for Y, labels, p, q, message in [
            (none, [], 9, 3, "2 <= p <= q|divides q|must be prime"),
            (none, [], 3, 0, "2 <= p <= q"),
            (np.zeros((2, 0)), [0, 0], 3, 6, "m at least 1"),
            ([[1, 2]], [3], 3, 6, "integers 0 to p - 1 = 2; got 3"),
            ([[1, 2]], [0.5], 3, 6, "integers 0 to p - 1 = 2; got 0.5"),
            ([[1, 9]], [0], 3, 6, "residues modulo 6"),
        ]:
            with pytest.raises(ValueError, match=message):
                recover(Y, labels, p, q)
    reduction = RoundingReduction(2, 2, 5)
    with pytest.raises(ValueError, match="2 <= p <= q"):
        RoundingReduction(2, 0, 5)
    with pytest.raises(ValueError, match="must fit int64"):
        RoundingReduction(1, 2, 2**33 - 9)
    with pytest.raises(ValueError, match="exceed 64 bits"):
        LearningWithRounding([1], 2, 2**33 - 9)
    with pytest.raises(ValueError, match="one value per row"):
        reduction.predictor(lambda X: X)([[1, 1]])
    with pytest.raises(ValueError, match="one value per row"):
        reduction.examples(Residues(np.array([[1, 1]]), np.array([0, 1])))
    assert LearningWithRounding([1.0, 3.0], 2, 5).secret.dtype == np.int64


def test_predictions_are_labels_whatever_the_hypothesis_says():
    predict = RoundingReduction(1, 3, 5).predictor(lambda X: np.array([-7.0, 1.6, 9.0, 0.4]))
    assert predict([[0], [1], [2], [3]]).tolist() == [0, 2, 2, 0]


def test_a_parity_is_unique_at_full_rank_only():
    assert learn_parity(X, Y).unique
    assert not learn_parity(np.delete(X, 2, axis=1)[:, [0, 1, 2, 2]], Y * X[:, 4]).unique


def test_a_ledger_is_asked_before_masks_take_memory():
    oracle = StatisticalQueryOracle(parity_distribution((0, 1), 300), 0.1, "exact", budget=10**6)
    with pytest.raises(QueryBudgetError):
        low_degree_by_queries(oracle, 8)


def test_correlations_at_the_edge_of_a_word():
    for n in (63, 64, 65):
        oracle = StatisticalQueryOracle(parity_distribution((0, n - 1), n), 0.3, rng=np.random.default_rng(n))
        masks = subset_masks(n, 1)
        assert np.abs(oracle.correlations(masks)).max() < 0.3
        assert oracle.correlations([(0, n - 1)])[0] == 1
        means = oracle.examples.character_means(subset_masks(n, 1))
        assert means.tolist() == [1.0] + n * [0.0]
