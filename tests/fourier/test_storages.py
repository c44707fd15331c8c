"""A sparse spectrum answers as the dense one does; both answer as brute force does."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identities import tables

from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, points

ANSWERS = {
    "n": lambda f: f.n,
    "degree": lambda f: f.degree(),
    "degree above a tolerance": lambda f: f.degree(0.3),
    "mean": lambda f: f.mean(),
    "norm": lambda f: f.norm(),
    "variance": lambda f: f.variance(),
    "weight_by_degree": lambda f: f.weight_by_degree(),
    "influences": lambda f: f.influences(),
    "total_influence": lambda f: f.total_influence(),
    "noise_stability": lambda f: f.noise_stability(-0.4),
    "noise_sensitivity": lambda f: f.noise_sensitivity(0.7),
    "tails": lambda f: [f.tail(d) for d in range(-1, f.n + 2)],
    "values": lambda f: f.values(),
    "call": lambda f: f(points(f.n)[::3]),
    "every coefficient": lambda f: [f[S] for k in range(f.n + 1) for S in itertools.combinations(range(f.n), k)],
}
FUNCTIONS = {
    "noise": lambda f: f.noise(-0.6),
    "truncate": lambda f: f.truncate(2),
    "negation": lambda f: -f,
    "multiple": lambda f: 3 * f * 0.5,
    "sum": lambda f: f + f.noise(0.5),
    "difference": lambda f: f - 0.5 * f.truncate(1),
    "quotient": lambda f: f / 4,
    "dense": lambda f: f.to_dense(),
    "sparse": lambda f: f.to_sparse(0.25),
    "restriction": lambda f: f.restrict({i: (-1) ** (i // 2) for i in range(0, f.n, 2)}),
}


@given(values=tables())
def test_answers_agree(values):
    dense = Spectrum.of(values)
    sparse = dense.to_sparse()
    for name, answer in ANSWERS.items():
        np.testing.assert_allclose(answer(sparse), answer(dense), rtol=1e-11, atol=1e-11, strict=True, err_msg=name)


@given(values=tables())
def test_functions_agree(values):
    dense = Spectrum.of(values)
    sparse = dense.to_sparse()
    for name, function in FUNCTIONS.items():
        found, expected = (function(f).to_dense().coefficients for f in (sparse, dense))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=name)


@given(values=tables(), k=st.integers(0, 70), min_degree=st.integers(0, 7))
def test_top_is_a_full_sort(values, k, min_degree):
    dense = Spectrum.of(values)
    allowed = [(S, c) for S, c in dense.items() if len(S) >= min_degree]
    ranked = sorted(allowed, key=lambda term: (-abs(term[1]), len(term[0]), term[0]))
    assert dense.top(k, min_degree) == ranked[:k]
    assert dense.to_sparse(-1.0).top(k, min_degree) == ranked[:k]  # -1: zeros are stored too


@given(values=tables(max_n=5), data=st.data())
def test_restriction_is_what_it_says(values, data):
    f = Spectrum.of(values)
    signs = data.draw(st.dictionaries(st.sampled_from(range(f.n)), st.sampled_from([1, -1]))) if f.n else {}
    free = [i for i in range(f.n) if i not in signs]
    X = np.ones((2 ** len(free), f.n), dtype=int)
    X[:, free] = points(len(free))
    for i, sign in signs.items():
        X[:, i] = sign
    at = (X < 0) @ (1 << np.arange(f.n, dtype=int))
    for storage in (f, f.to_sparse()):
        restricted = storage.restrict(signs)
        assert restricted.n == len(free)
        np.testing.assert_allclose(restricted.values(), values[at], rtol=1e-11, atol=1e-11)


@pytest.fixture(scope="module")
def wide():
    """A function of 2000 coordinates with 37 coefficients, as a plain dictionary, and its spectrum."""
    rng = np.random.default_rng(11)
    subsets = {tuple(sorted(rng.choice(2000, size=size, replace=False).tolist())) for size in rng.integers(0, 9, 37)}
    coefficients = {S: float(rng.normal()) for S in sorted(subsets)}
    return coefficients, Spectrum.of(coefficients, n=2000)


def test_wide_values(wide):
    coefficients, f = wide
    X = np.random.default_rng(12).choice([-1, 1], size=(23, 2000))
    expected = characters(X, list(coefficients)) @ list(coefficients.values())
    np.testing.assert_allclose(f(X), expected, rtol=1e-12, atol=1e-12)


def test_wide_sums(wide):
    coefficients, f = wide
    influences = np.zeros(2000)
    for S, c in coefficients.items():
        influences[list(S)] += c * c
    np.testing.assert_allclose(f.influences(), influences, rtol=1e-13)
    assert f.total_influence() == pytest.approx(sum(len(S) * c * c for S, c in coefficients.items()))
    assert f.noise_sensitivity(0.9) == pytest.approx(
        sum((1 - 0.9 ** len(S)) / 2 * c * c for S, c in coefficients.items())
    )
    assert dict(f.items()) == coefficients
    assert f.weight_by_degree().shape == (2001,)


def test_wide_restriction(wide):
    coefficients, f = wide
    involved = sorted({i for S in coefficients for i in S})
    signs = {i: (-1) ** k for k, i in enumerate(involved[::2])}
    restricted = f.restrict(signs)
    X = np.random.default_rng(13).choice([-1, 1], size=(17, 2000))
    X[:, list(signs)] = list(signs.values())
    assert restricted.n == 2000 - len(signs)
    np.testing.assert_allclose(restricted(np.delete(X, list(signs), axis=1)), f(X), rtol=1e-12, atol=1e-12)


def test_wide_order(wide):
    subsets = wide[1].subsets
    assert subsets == sorted(subsets, key=lambda S: (len(S), S))


def test_tables_larger_than_a_block():
    """n = 18: sums by blocks equal sums over the whole table."""
    rng = np.random.default_rng(18)
    table = np.where(rng.random(2**18) < 0.01, rng.normal(size=2**18), 0.0)
    f = Spectrum.from_coefficients(table)
    sparse = f.to_sparse()
    np.testing.assert_allclose(f.weight_by_degree(), sparse.weight_by_degree(), rtol=1e-12)
    np.testing.assert_allclose(f.influences(), sparse.influences(), rtol=1e-12)
    assert f.degree() == sparse.degree()
    assert f.degree(2.0) == sparse.degree(2.0)
    assert f.noise(0.5) == sparse.noise(0.5)
    assert f.truncate(7) == sparse.truncate(7)
    assert f.top(29, min_degree=5) == sparse.top(29, min_degree=5)
