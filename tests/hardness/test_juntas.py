"""Juntas from uniform examples: the right variables and table, by brute force and by restrictions."""

from __future__ import annotations

from math import ceil, comb, log

import numpy as np
import pytest

from sparsact import kernels
from sparsact.fourier import Spectrum
from sparsact.hardness import InconsistentLabelsError, junta_samples, learn_junta
from sparsact.hardness.junta_learners import Work, balanced_order, tabulated
from sparsact.hypercube import points
from sparsact.kernels import dispatch

METHODS = ["brute force", "restrictions"]
BACKENDS = ["reference"] if dispatch.native is None else ["reference", "native"]
CHANCE = 1e-6  # of each learner, so that all tests of this file fail with probability below 1e-4


def examples(n, p, seed, failure_probability=CHANCE):
    m = junta_samples(n, p, failure_probability=failure_probability)
    return np.random.default_rng(seed).choice(np.array([1, -1], dtype=np.int8), (m, n))


def places(X, variables):
    return (X[:, list(variables)] < 0) @ (1 << np.arange(len(variables)))


def table_of(name, p):
    """Tables over p variables: easy, hidden, and hidden where a variable is fixed."""
    Y = points(p)
    both = (Y[:, -1] < 0) & (Y[:, -2] < 0)
    return {
        "parity": Y.prod(axis=1),
        "majority": np.where(Y.sum(axis=1) > 0, 1, -1),
        "and": np.where((Y < 0).all(axis=1), -1, 1),
        "parity and product": Y[:, :-2].prod(axis=1) * np.where(both, -1, 1),
        "switched parity": np.where(Y[:, 0] > 0, Y[:, 1:].prod(axis=1), Y[:, 1]),
        "random": np.random.default_rng(p).choice([1, -1], 2**p),
    }[name]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "variables"), [(19, (2, 17, 11, 5)), (67, (66, 0, 64)), (5, (0, 1, 2, 3, 4))])
@pytest.mark.parametrize("name", ["parity", "majority", "and", "parity and product", "switched parity", "random"])
def test_the_junta_is_recovered(name, n, variables, method):
    p = len(variables)
    table = table_of(name, p)
    X = examples(n, p, seed=n)
    learned = learn_junta(X, table[places(X, variables)], p, method=method, failure_probability=CHANCE)
    f = Spectrum.of(table)
    relevant = tuple(sorted(variables[i] for i in np.flatnonzero(f.influences() > 0)))
    assert learned.variables == relevant
    fresh = np.random.default_rng(1).choice([1, -1], (300, n))
    expected = table[places(fresh, variables)]
    assert np.array_equal(learned(fresh), expected)
    assert np.array_equal(learned.network()(fresh), expected)
    moved = {tuple(sorted(variables[i] for i in S)): value for S, value in f.items()}
    difference = Spectrum.of(learned) - Spectrum.of(moved, n=n)
    assert difference.norm() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", METHODS)
def test_both_kernels(backend, method):
    X = examples(12, 3, seed=5)
    with kernels.using(backend):
        learned = learn_junta(X, X[:, 1] * X[:, 5] * X[:, 9], 3, method=method, failure_probability=CHANCE)
    assert learned.variables == (1, 5, 9)


@pytest.mark.parametrize("method", METHODS)
def test_fewer_variables_than_allowed(method):
    X = examples(14, 4, seed=6)
    for labels, variables in [(X[:, 3] * X[:, 7], (3, 7)), (np.ones(len(X)), ()), (-X[:, 13], (13,))]:
        learned = learn_junta(X, labels, 4, method=method, failure_probability=CHANCE)
        assert learned.variables == variables
        assert np.array_equal(learned(X), labels)
        assert learned.network()(X) == pytest.approx(labels)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_no_junta_of_p_variables(method):
    """A parity of 5 of 14, random labels, and one wrong label."""
    X = examples(14, 3, seed=7)
    noise = np.random.default_rng(8).choice([1, -1], len(X))
    flipped = X[:, 0] * X[:, 1]
    flipped[17] *= -1
    for labels in (X[:, :5].prod(axis=1), noise, flipped):
        with pytest.raises(InconsistentLabelsError, match="no function of at most 3 variables was found"):
            learn_junta(X, labels, 3, method=method, failure_probability=CHANCE)


def test_variables_that_change_nothing_are_dropped():
    """Such variables remain after a correlation that was significant by chance."""
    X = np.random.default_rng(3).choice([1, -1], (200, 7))
    learned = tabulated(X, X[:, 2] * X[:, 5], (0, 2, 3, 5), Work())
    assert learned.variables == (2, 5)
    assert learned.table.tolist() == [1, -1, -1, 1]
    with pytest.raises(ValueError, match="no example shows some assignment"):
        tabulated(X[:10], X[:10, 2], (0, 1, 2, 3, 4), Work())


def test_the_exponents_of_a_parity_of_three():
    """Correlations taken from n = 30 to n = 60: brute force grows as n**3, restrictions as n**2."""
    assert balanced_order(30, 3, CHANCE / 12) == balanced_order(60, 3, CHANCE / 12) == 2
    slopes = {}
    for method in METHODS:
        counts = []
        for n in (30, 60):
            X = examples(n, 3, seed=n)
            work = learn_junta(X, X[:, [0, 7, 19]].prod(axis=1), 3, method=method, failure_probability=CHANCE).work
            counts.append(work.correlations)
        slopes[method] = log(counts[1] / counts[0]) / log(2)
    assert slopes["brute force"] == pytest.approx(3, abs=0.1)
    assert slopes["restrictions"] == pytest.approx(2, abs=0.1)


def test_the_work_is_counted():
    X = examples(15, 3, seed=9)
    words = -(-len(X) // 64)
    labels = X[:, [2, 4, 11]].prod(axis=1)
    brute = learn_junta(X, labels, 3, method="brute force", failure_probability=CHANCE).work
    assert (brute.correlations, brute.unknowns) == (15 + 105 + 455, 0)
    assert brute.word_operations == brute.correlations * words
    order = balanced_order(15, 3, CHANCE / 12)
    learned = learn_junta(X, labels, 3, failure_probability=CHANCE).work
    assert order == 2
    assert (learned.correlations, learned.unknowns) == (15 + 105, 1 + 15)
    assert learned.word_operations > learned.correlations * words


def test_the_balance_tends_to_three_quarters():
    """omega = 3: orders up to 3p/4 by correlations, the rest by elimination."""
    assert [balanced_order(10**9, p, 1e-3) for p in (4, 8, 12)] == [3, 6, 9]
    assert balanced_order(50, 1, 1e-3) == 1


def test_examples_are_as_many_as_the_proof_asks_for():
    """Correlations at all sizes up to p of the free variables, polynomials, restrictions, each with its share."""
    for n, p, chance in [(1, 1, 0.01), (20, 1, 0.01), (10_000, 3, 0.01), (30, 3, 0.2), (9, 5, 1e-4)]:
        each = chance / (4 * p)
        needed = [8 * 2**p * log(2**p * 4 / chance)]
        for fixed in range(p):
            free, k = n - fixed, p - fixed
            family = sum(comb(free, size) for size in range(1, k + 1))
            degree = k - balanced_order(free, k, each)
            unknowns = sum(comb(free, size) for size in range(degree + 1))
            correlations = 2 * log(2 * family / each) * 4**k
            polynomials = (unknowns * log(2) + log(1 / each)) / -log(1 - 2.0**-degree) if degree else 1
            doubled = 2 if fixed else 1  # a restriction may have half of its share
            needed.append(max(ceil(correlations), ceil(polynomials)) * 2**fixed * doubled)
        assert junta_samples(n, p, failure_probability=chance) == ceil(max(needed))
    assert junta_samples(5, 5, failure_probability=0.999) >= 8 * 2**5 * log(2**7)


def test_bad_juntas():
    X = np.random.default_rng(0).choice([1, -1], (500, 9))
    y = X[:, 0]
    with pytest.raises(ValueError, match=r"from [\d,]+ examples; got 500: pass more"):
        learn_junta(X, y, 4)
    for bad, labels, p, message in [
        (X, y[:-1], 2, "must agree"),
        (X, 0 * y, 2, r"labels \+1 and -1"),
        (0 * X, y, 2, r"signs \+1 and -1"),
        (X, y, 0, "`p` must lie between 1"),
        (X, y, 10, "`p` must lie between 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            learn_junta(bad, labels, p)
    with pytest.raises(ValueError, match="`method` must be one of"):
        learn_junta(X, y, 1, method="guess")
    with pytest.raises(ValueError, match="`failure_probability` must lie"):
        junta_samples(9, 2, failure_probability=0)
