"""Parity on bits and on their lift: lost to statistical queries, plain to elimination."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from sparsact.constructions import parity
from sparsact.fourier import Spectrum
from sparsact.hardness import (
    InconsistentLabelsError,
    StatisticalQueryOracle,
    learn_parity,
    low_degree_by_queries,
    parity_contest,
    parity_distribution,
    statistical_queries_needed,
)
from sparsact.hypercube import points
from sparsact.lift import Lift


@pytest.mark.parametrize(("m", "S"), [(3, (0, 1, 2)), (5, (1, 4)), (6, ()), (7, (0, 2, 3, 5, 6))])
def test_the_labels_are_those_of_a_one_sparse_network(m, S):
    distribution = parity_distribution(S, m, lifted=True)
    X, y, probability = distribution.support()
    net = parity(S, m, signs=True)
    assert np.array_equal(net(X), y)
    assert net.n_active(X).max() <= 1
    assert probability.sum() == pytest.approx(1)
    X, y = distribution.sample(37, rng=np.random.default_rng(m))
    assert np.array_equal(net(X), y)


@pytest.mark.parametrize(("m", "S"), [(4, (2,)), (23, (0, 5, 22)), (70, tuple(range(1, 70, 3)))])
def test_elimination_recovers_the_subset(m, S):
    """m + 30 uniform examples have rank m except with probability 2**-30."""
    X, y = parity_distribution(S, m).sample(m + 30, rng=np.random.default_rng(m))
    learned = learn_parity(X, y)
    assert learned.unique
    assert learned.subset == S
    fresh = np.random.default_rng(1).choice([1, -1], (50, m))
    assert np.array_equal(learned(fresh), fresh[:, list(S)].prod(axis=1))
    assert Spectrum.of(learned).subsets == [S]


def test_the_lift_takes_no_more_examples():
    """12 bits, 144 coordinates: 12 + 30 examples predict all lifted points, though many subsets agree with them."""
    m, S = 12, (0, 3, 4, 8, 11)
    lifted = parity_distribution(S, m, lifted=True)
    learned = learn_parity(*lifted.sample(m + 30, rng=np.random.default_rng(6)))
    assert not learned.unique
    assert learned.rank == m
    X, y, _ = lifted.support()
    assert np.array_equal(learned(X), y)


def test_inconsistent_labels_are_detected():
    """One wrong label among 40 for 8 bits: the other rows span its own except with probability below 2**-30."""
    X, y = parity_distribution((1, 6), 8).sample(40, rng=np.random.default_rng(7))
    y[13] *= -1
    with pytest.raises(InconsistentLabelsError, match="has no solution"):
        learn_parity(X, y)
    constant = np.ones((9, 5))
    assert learn_parity(constant, np.ones(9)).subset == ()
    with pytest.raises(InconsistentLabelsError):
        learn_parity(constant, -np.ones(9))


def test_bad_examples():
    X = points(3)
    for bad, labels, message in [
        (X, np.ones(7), "must agree"),
        (X[0], np.ones(3), "must agree"),
        (X, np.zeros(8), r"labels \+1 and -1"),
        (X == 1, np.ones(8), "holds bits"),
        (0.5 * X, np.ones(8), r"signs \+1 and -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            learn_parity(bad, labels)
    with pytest.raises(ValueError, match="names coordinate 3"):
        parity_distribution((3,), 3)
    with pytest.raises(ValueError, match="the empty parity"):
        parity_contest(3, (), rng=np.random.default_rng(0))


@pytest.mark.parametrize("answers", ["adversarial", "sampling"])
def test_low_degree_by_queries_needs_the_whole_degree(answers):
    """Sampled answers fail with probability 1e-9 each, under 1e-5 in all. Adversarial ones are 0 below the degree."""
    m, S = 9, (0, 2, 3, 7)
    distribution = parity_distribution(S, m)
    Y = points(m)
    for degree in range(6):
        oracle = StatisticalQueryOracle(
            distribution, 0.1, answers, failure_probability=1e-9, rng=np.random.default_rng(degree)
        )
        h = low_degree_by_queries(oracle, degree)
        assert oracle.ledger.n_queries == sum(comb(m, k) for k in range(degree + 1))
        if degree < len(S):
            assert np.abs(h.coefficients).max(initial=0) <= 0.1
            assert h[S] == 0
            assert answers == "sampling" or h.coefficients.size == 0
        else:
            assert 0.9 <= h[S] <= 1
            if answers == "adversarial":
                assert np.array_equal(np.sign(h(Y)), distribution.labels(Y))


def test_the_contest():
    """16 bits, a parity of 7: the statistical-query learners stop at chance until their degree is 7.

    Errors on 4000 fresh points: a regression without any signal passes 0.45 with a chance below 1e-9 (Hoeffding);
    elimination lacks rank with probability 2**-20, twice; the search by queries fails with probability 1e-6.
    """
    m, S = 16, (1, 2, 5, 8, 9, 12, 15)
    rows = parity_contest(m, S, rng=np.random.default_rng(3), budget=30_000, n_examples=900)
    by = {(row.learner, row.inputs): row for row in rows}
    for degree in range(1, 8):
        row = by[f"low degree, d = {degree}", "bits"]
        assert row.queries == sum(comb(m, k) for k in range(degree + 1))
        assert row.error == (0.0 if degree == 7 else 0.5)
    assert by["low degree, d = 1", "lifted"].error == 0.5
    too_many = by["low degree, d = 2", "lifted"]
    assert (too_many.error, too_many.queries) == (None, 1 + 256 + comb(256, 2))
    for name in [("regression, d = 2", "bits"), ("regression, d = 1", "lifted")]:
        assert by[name].error > 0.45
    for inputs in ("bits", "lifted"):
        assert (by["elimination", inputs].examples, by["elimination", inputs].error) == (36, 0.0)
    assert by["heavy coefficients", "bits"].error == 0.0
    assert by["heavy coefficients", "bits"].queries < by["low degree, d = 7", "bits"].queries
    assert by["low degree, d = 7", "bits"].queries >= statistical_queries_needed(m, 0.1)


def test_forty_bits_lifted_to_sixteen_hundred():
    """The lift of 40 bits: one correlation a coordinate tells nothing, 60 examples tell all."""
    m, S = 40, tuple(range(0, 40, 2))
    lifted = parity_distribution(S, m, lifted=True)
    oracle = StatisticalQueryOracle(lifted, 0.05, "adversarial")
    assert low_degree_by_queries(oracle, 1).coefficients.size == 0
    assert oracle.ledger.n_queries == 1 + m * m
    X, y = lifted.sample(60, rng=np.random.default_rng(12))
    assert X.shape == (60, Lift.quadratic(m).n)
    fresh, labels = lifted.sample(200, rng=np.random.default_rng(13))
    assert np.array_equal(learn_parity(X, y)(fresh), labels)
