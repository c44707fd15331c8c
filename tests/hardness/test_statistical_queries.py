"""Oracles answer within their tolerance, whichever answer they choose, and their ledgers count every query."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from math import ceil, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsact.fourier import Spectrum
from sparsact.hardness import (
    LearningWithRounding,
    Ledger,
    LiftedFunction,
    MembershipOracle,
    QueryBudgetError,
    StatisticalQueryOracle,
    low_degree_by_queries,
    parity_distribution,
)
from sparsact.hypercube import characters, points, subset_masks, subsets_of
from sparsact.lift import Lift

CHANCE = 1e-9  # of one sampled answer; a test asks fewer than 1000, so it fails with probability below 1e-6


def distributions():
    rng = np.random.default_rng(3)
    table = rng.uniform(-1, 1, 2**5)
    return {
        "real table": LiftedFunction(table, 5),
        "boolean callable": LiftedFunction(lambda Y: np.where(Y.sum(axis=1) > 1, 1, -1), 6),
        "lifted parity": parity_distribution((0, 2, 3), 4, lifted=True),
        "another lift": LiftedFunction(Spectrum.of({(1,): 0.5, (0, 2): -0.5}, n=3), 3, Lift([(0, 1), (2,), (1, 2)], 3)),
    }


NAMES = list(distributions())


def queries(n):
    """Bounded queries of several shapes: of the point, of the label, of both."""
    rng = np.random.default_rng(n)
    w = rng.normal(size=n)
    return [
        lambda X, y: y,
        lambda X, y: y * X[:, 0],
        lambda X, y: np.tanh(X @ w + y),
        lambda X, y: np.where(X[:, -1] * y > 0.2, 1.0, -0.3),
        lambda X, y: np.abs(y) * X[:, 1],
    ]


def truth(distribution, phi):
    X, y, probability = distribution.support()
    return float(probability @ phi(X, y))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answers", ["exact", "adversarial", "sampling"])
def test_answers_are_legal(name, answers):
    distribution = distributions()[name]
    oracle = StatisticalQueryOracle(
        distribution, 0.07, answers, failure_probability=CHANCE, rng=np.random.default_rng(11)
    )
    for phi in queries(distribution.n):
        assert abs(oracle.query(phi) - truth(distribution, phi)) <= 0.07 + 1e-12
    masks = subset_masks(distribution.n, 2)
    X, y, probability = distribution.support()
    expected = (y * probability) @ characters(X, subsets_of(masks))
    assert_allclose(oracle.correlations(masks), expected, atol=0.07 + 1e-12, rtol=0)
    assert oracle.ledger.n_queries == 5 + len(masks)


@pytest.mark.parametrize("name", NAMES)
def test_exact_correlations_are_the_expectations(name):
    """From the spectrum of the label and the pulled-back characters, against enumeration."""
    distribution = distributions()[name]
    masks = subset_masks(distribution.n, 3)
    X, y, probability = distribution.support()
    table = characters(X, subsets_of(masks))
    assert_allclose(distribution.correlations(masks), (y * probability) @ table, atol=1e-12)
    assert_allclose(distribution.character_means(masks), probability @ table, atol=1e-12)


def test_the_adversary_says_what_random_labels_would_while_it_may():
    distribution = LiftedFunction(lambda Y: Y[:, 1] * Y[:, 4], 5)
    oracle = StatisticalQueryOracle(distribution, 0.2, "adversarial")
    rng = np.random.default_rng(5)
    for _ in range(20):
        g, h = rng.uniform(-0.5, 0.5, (2, 32))

        def phi(X, y, g=g, h=h):
            places = (X < 0) @ (1 << np.arange(5))
            return g[places] + y * h[places]

        decoy, value = g.mean(), truth(distribution, phi)
        expected = decoy if abs(decoy - value) <= 0.2 else value + 0.2 * np.sign(decoy - value)
        assert oracle.query(phi) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_adversary_treats_characters_as_any_other_query(name):
    """By the spectrum, and one by one by enumeration; also where labels are biased and characters constant."""
    distribution = distributions()[name]
    oracle = StatisticalQueryOracle(distribution, 0.03, "adversarial")
    for subset in subsets_of(subset_masks(distribution.n, 3))[::3]:
        one = oracle.correlation(lambda X, subset=subset: X[:, list(subset)].prod(axis=1))
        assert oracle.correlations([subset]) == pytest.approx([one], abs=1e-12)


def test_sampled_correlations_are_means():
    """Constants are exact to the last bit; labels +-1 are summed by popcount, others by products."""
    for values in ([1.0, -1.0, -1.0, 1.0], [0.5, -0.5, -0.5, 0.5]):
        oracle = StatisticalQueryOracle(LiftedFunction(values, 2), 0.2, rng=np.random.default_rng(1))
        assert oracle.correlations([(0, 1)])[0] == values[0]
        assert oracle.correlation(lambda X: X.prod(axis=1)) == pytest.approx(values[0])


def test_the_adversary_uses_the_share_of_each_label():
    """Labels 0, 1, 2 of unequal shares, from learning with rounding by a modulus that p does not divide."""
    instance = LearningWithRounding([2, 3], p=3, q=5)
    X, y, probability = instance.support()

    def phi(X, y):
        return np.where(y == 2, X[:, 0], 0.25 * (y == 1))

    shares = [float(probability @ (y == value)) for value in range(3)]
    decoy = shares[2] * float(probability @ X[:, 0]) + 0.25 * shares[1]
    assert StatisticalQueryOracle(instance, 1.0, "adversarial").query(phi) == pytest.approx(decoy)
    assert StatisticalQueryOracle(instance, 0.1, "exact").query(phi) == pytest.approx(truth(instance, phi))


def test_samples_are_as_many_as_hoeffding_asks_for():
    distribution = LiftedFunction([1.0, -1.0, -1.0, 0.5], 2)
    oracle = StatisticalQueryOracle(
        distribution, 0.11, failure_probability=0.003, budget=9, rng=np.random.default_rng(2)
    )
    each = ceil(2 * log(2 / 0.003) / 0.11**2)
    oracle.query(lambda X, y: y, "the mean")
    oracle.correlations([(0,), (0, 1)])
    oracle.correlations([])
    assert oracle.ledger.n_samples == 2 * each
    assert [(r.description, r.count, r.tolerance, r.n_samples) for r in oracle.ledger.records] == [
        ("the mean", 1, 0.11, each),
        ("characters", 2, 0.11, each),
        ("characters", 0, 0.11, 0),
    ]
    assert oracle.ledger.left == 6


def test_sampled_answers_do_fail_as_often_as_they_may():
    """200 answers with failure probability 0.2 each: Hoeffding is generous, but the mean error is not 0; that more
    than 80 fail has a chance below 1e-6 (binomial, 40 expected)."""
    distribution = parity_distribution((0,), 3)
    oracle = StatisticalQueryOracle(distribution, 0.3, failure_probability=0.2, rng=np.random.default_rng(8))
    answers = np.array([oracle.correlation(lambda X: X[:, 1]) for _ in range(200)])
    assert np.abs(answers).max() > 0
    assert np.count_nonzero(np.abs(answers) > 0.3) <= 80


def test_a_full_ledger_answers_nothing():
    oracle = StatisticalQueryOracle(parity_distribution((0, 1), 4), 0.1, "exact", budget=11)
    oracle.query(lambda X, y: y)
    with pytest.raises(QueryBudgetError, match="11 queries were asked for, and 10 of the budget of 11 are left"):
        low_degree_by_queries(oracle, 2)
    assert oracle.ledger.n_queries == 1
    assert low_degree_by_queries(oracle, 1).coefficients.size == 0
    assert oracle.ledger.left == 5
    with pytest.raises(QueryBudgetError):
        oracle.correlations(subset_masks(4, 4))
    for _ in range(5):
        oracle.query(lambda X, y: y)
    with pytest.raises(QueryBudgetError, match="1 queries were asked for, and 0"):
        oracle.query(lambda X, y: y)


def test_records_are_frozen():
    ledger = Ledger()
    given = [0.5]
    ledger.record("one", given, tolerance=0.1)
    with pytest.raises(FrozenInstanceError):
        ledger.records[0].count = 3
    with pytest.raises(ValueError, match="read-only"):
        ledger.records[0].answers[0] = 1.0
    assert ledger.left is None
    with pytest.raises(ValueError, match="`budget` must be 0 or more"):
        Ledger(-1)


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (lambda X, y: 2 * y, r"values in \[-1, 1\]; it returned"),
        (lambda X, y: y * np.nan, r"values in \[-1, 1\]; it returned nan"),
        (lambda X, y: X, r"one value per example, shape \("),
    ],
)
@pytest.mark.parametrize("answers", ["exact", "adversarial", "sampling"])
def test_queries_that_are_not_bounded(phi, message, answers):
    oracle = StatisticalQueryOracle(parity_distribution((1,), 3), 0.2, answers, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        oracle.query(phi)
    assert oracle.ledger.n_queries == 0


def test_bad_oracles():
    parity = parity_distribution((0,), 3)
    for tolerance in (0.0, -0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="`tolerance` must lie in"):
            StatisticalQueryOracle(parity, tolerance, "exact")
    with pytest.raises(ValueError, match="`rng` must be a numpy"):
        StatisticalQueryOracle(parity, 0.1)
    with pytest.raises(ValueError, match="`answers` must be one of sampling, adversarial, exact"):
        StatisticalQueryOracle(parity, 0.1, "honest")
    with pytest.raises(ValueError, match="`failure_probability` must lie"):
        StatisticalQueryOracle(parity, 0.1, failure_probability=0, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="names coordinate 3"):
        StatisticalQueryOracle(parity, 0.1, "exact").correlations([(3,)])
    with pytest.raises(ValueError, match="`degree` must lie between 0 and 3"):
        low_degree_by_queries(StatisticalQueryOracle(parity, 0.1, "exact"), 4)


def test_bad_distributions():
    with pytest.raises(ValueError, match="`m`, the number of uniform bits, must be 1 or more"):
        parity_distribution((), 0)
    with pytest.raises(ValueError, match="the lift takes 4; they must agree"):
        LiftedFunction(lambda Y: Y[:, 0], 3, Lift.quadratic(4))
    with pytest.raises(ValueError, match="the function has 2 coordinates, not m = 3"):
        LiftedFunction([1, -1, -1, 1], 3)
    with pytest.raises(ValueError, match="one value per row"):
        LiftedFunction(lambda Y: Y, 3).sample(5, rng=np.random.default_rng(0))
    wide = LiftedFunction(lambda Y: Y[:, 0], 30)
    for ask in (wide.support, lambda: wide.correlations(subset_masks(30, 1))):
        with pytest.raises(ValueError, match=r"needs all 2\*\*m points"):
            ask()
    with pytest.raises(ValueError, match=r"values in \[-1, 1\]"):
        StatisticalQueryOracle(LiftedFunction([2.0, 0.0], 1), 0.1, rng=np.random.default_rng(0)).correlations([(0,)])


def test_low_degree_by_queries_is_the_truncation():
    """Exact answers give the part of low degree; sampled ones each coefficient within the tolerance."""
    values = np.random.default_rng(6).uniform(-1, 1, 2**7)
    f = Spectrum.of(values)
    distribution = LiftedFunction(values, 7)
    h = low_degree_by_queries(StatisticalQueryOracle(distribution, 0.1, "exact"), 3)
    assert_allclose(h.values(), f.truncate(3).values(), atol=1e-12)
    oracle = StatisticalQueryOracle(distribution, 0.1, failure_probability=CHANCE, rng=np.random.default_rng(7))
    sampled = low_degree_by_queries(oracle, 2)
    assert oracle.ledger.n_queries == 29
    assert max(abs(sampled[T] - f[T]) for T in subsets_of(subset_masks(7, 2))) <= 0.1


def test_membership_queries_are_counted_and_checked():
    oracle = MembershipOracle(lambda X: X[:, 0] - X[:, 3], 4, budget=20)
    X = points(4)
    assert_array_equal(oracle(X), X[:, 0] - X[:, 3])
    with pytest.raises(QueryBudgetError):
        oracle(X[:5])
    oracle(X[:4])
    assert oracle.ledger.n_queries == 20
    with pytest.raises(ValueError, match=r"must hold signs \+1 and -1"):
        oracle(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="one value per row"):
        MembershipOracle(lambda X: X, 3)(points(3))
    with pytest.raises(ValueError, match="must be finite"):
        MembershipOracle(lambda X: np.full(len(X), np.nan), 3)(points(3))
    with pytest.raises(ValueError, match="`n` must be 1 or more"):
        MembershipOracle(lambda X: X[:, 0], 0)
