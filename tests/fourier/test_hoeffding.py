"""Components of functions on grids of letters, beside their definition by conditional expectations."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsact.fourier import Spectrum, anova, walsh_hadamard

SIZES = (2, 5, 3, 4)


def subsets(n):
    return chain.from_iterable(combinations(range(n), k) for k in range(n + 1))


def drawn(sizes, seed, zeros=False):
    """A function and frequencies of letters, some of them 0."""
    rng = np.random.default_rng(seed)
    frequencies = [rng.dirichlet(np.ones(q)) for q in sizes]
    if zeros:
        for weights in frequencies:
            weights[rng.integers(len(weights))] = 0.0
    return rng.normal(size=sizes), frequencies


def brute_force(values, frequencies):
    """Every component as a table over the whole grid, one conditional expectation at a time."""
    n, cells = values.ndim, list(product(*map(range, values.shape)))
    weights = [np.array(one) / np.sum(one) for one in frequencies]
    found = {}
    for chosen in subsets(n):
        table = np.zeros(values.shape)
        for inner in chain.from_iterable(combinations(chosen, k) for k in range(len(chosen) + 1)):
            for cell in cells:
                mean = sum(
                    values[other] * np.prod([weights[i][other[i]] for i in range(n) if i not in inner])
                    for other in cells
                    if all(other[i] == cell[i] for i in inner)
                )
                table[cell] += (-1) ** (len(chosen) - len(inner)) * mean
        found[chosen] = table
    measure = np.ones(())
    for one in weights:
        measure = np.multiply.outer(measure, one)
    return found, measure


@pytest.mark.parametrize("zeros", [False, True])
def test_components_are_their_definition(zeros):
    values, frequencies = drawn(SIZES[:3], 1, zeros)
    found = anova(values, frequencies)
    expected, measure = brute_force(values, frequencies)
    for chosen, table in expected.items():
        shape = [values.shape[i] if i in chosen else 1 for i in range(values.ndim)]
        np.testing.assert_allclose(
            np.broadcast_to(found.component(chosen).reshape(shape), values.shape), table, atol=1e-14
        )
        variance = 0.0 if not chosen else (measure * table**2).sum()
        np.testing.assert_allclose(found.variance(chosen), variance, atol=1e-14)
    assert found.mean == pytest.approx((measure * values).sum())


@given(st.integers(0, 99), st.booleans())
def test_variances_add_up(seed, zeros):
    values, frequencies = drawn(SIZES, seed, zeros)
    found = anova(values, frequencies)
    measure = np.einsum("a,b,c,d->abcd", *frequencies) / np.prod([np.sum(one) for one in frequencies])
    whole = (measure * (values - (measure * values).sum()) ** 2).sum()
    assert found.variances.sum() == pytest.approx(whole)
    assert found.variance_by_degree().sum() == pytest.approx(whole)
    pairs = found.variance_by_pair()
    assert (pairs == pairs.T).all()
    assert pairs.trace() == pytest.approx(found.variance_by_degree()[0])
    assert np.triu(pairs, 1).sum() == pytest.approx(found.variance_by_degree()[1])
    by_site = [sum(found.variance(S) for S in subsets(4) if i in S) for i in range(4)]
    np.testing.assert_allclose(found.variance_by_site(), by_site)


def test_two_letters_a_site_are_the_cube():
    values = np.random.default_rng(2).normal(size=2**5)
    squares = np.asarray(walsh_hadamard(values)) ** 2
    squares[0] = 0.0
    # the first coordinate is the lowest bit of a point's number, and the last axis
    np.testing.assert_allclose(anova(values.reshape((2,) * 5)).variances.ravel(), squares, atol=1e-15)


def test_a_polynomial_in_bits_of_letters_is_its_grid():
    rng, sizes = np.random.default_rng(5), (3, 2, 4)
    bits = [np.eye(3), [[0], [1]], np.eye(4)[:, 1:]]  # all letters, one of two, all but the first
    terms = [(), (0,), (1, 2), (3,), (3, 6), (0, 3, 5), (2, 4, 5, 6)]
    polynomial = Spectrum.of({subset: rng.normal() for subset in terms}, n=7)
    cells = np.indices(sizes).reshape(3, -1)
    rows = np.concatenate([np.asarray(one)[letters] for one, letters in zip(bits, cells, strict=True)], axis=1)
    frequencies = drawn(sizes, 6)[1]
    expected = anova(polynomial(1 - 2 * rows).reshape(sizes), frequencies)
    for function in (polynomial, polynomial.under(0.2)):
        found = anova(function, frequencies, letters=bits)
        assert found.mean == pytest.approx(expected.mean)
        for chosen in subsets(3):
            np.testing.assert_allclose(found.component(chosen), expected.component(chosen), atol=1e-14)
            assert found.variance(chosen) == pytest.approx(expected.variance(chosen), abs=1e-14)
        for method in ("variance_by_degree", "variance_by_site", "variance_by_pair"):
            np.testing.assert_allclose(getattr(found, method)(), getattr(expected, method)(), atol=1e-14)
        assert [effect for *_, effect in found.top_effects(9)] == pytest.approx(
            [effect for *_, effect in expected.top_effects(9)]
        )


def test_a_polynomial_of_more_bits_than_any_grid_is_its_spectrum():
    rng, p = np.random.default_rng(8), np.linspace(0.05, 0.95, 60)
    terms = {tuple(sorted(rng.permutation(60)[:size].tolist())): rng.normal() for size in (1, 1, 2, 2, 2, 3, 3, 5)}
    found = anova(Spectrum.of(terms, n=60), [(1 - q, q) for q in p], letters=[[[0], [1]]] * 60)
    expected = Spectrum.of(terms, n=60, measure=p)
    np.testing.assert_allclose(found.variance_by_degree(), expected.weight_by_degree()[1:], atol=1e-14)
    np.testing.assert_allclose(found.variance_by_site(), expected.influences(), atol=1e-14)


def test_a_large_mean_costs_no_digits():
    values, frequencies = drawn(SIZES, 3)
    expected = anova(values, frequencies).variances
    np.testing.assert_allclose(anova(values + 1e6, frequencies).variances, expected, rtol=1e-6, atol=1e-12)


def test_effects_come_by_size_and_only_of_letters_that_occur():
    values = np.zeros((3, 4, 2))
    values[2, :, :] = 5.0  # a letter without frequency
    values[1, 3, :] = 1.0
    found = anova(values, [[1, 1, 0], [1, 1, 1, 1], [1, 1]])
    sites, letters, effect = found.top_effects(1)[0]
    assert (sites, letters) == ((1,), (3,))
    assert effect == pytest.approx(0.5 - 0.125)
    effects = found.top_effects(99)
    assert len(effects) == (2 + 4 + 2) + (2 * 4 + 2 * 2 + 4 * 2)  # letters and pairs of letters that occur
    assert all(abs(effect) < 1 for *_, effect in effects)


@pytest.mark.parametrize(
    ("values", "frequencies", "message"),
    [
        (np.full((2, 2), np.nan), None, "must be finite"),
        (3.0, None, "an axis for each site"),
        (np.ones((2, 3)), [[1, 1]], "has 1 sites and `values` 2 axes"),
        (np.ones((2, 3)), [[1, 1], [1, 1]], "frequencies of site 1 must be 3 numbers"),
        (np.ones((2, 3)), [[1, -1], [1, 1, 1]], "frequencies of site 0"),
    ],
)
def test_what_is_refused(values, frequencies, message):
    with pytest.raises(ValueError, match=message):
        anova(values, frequencies)
    polynomial = Spectrum.of({(0, 4): 1.0}, n=5)
    with pytest.raises(ValueError, match="a Spectrum needs the bits of its `letters`"):
        anova(polynomial)
    with pytest.raises(ValueError, match="a Spectrum needs the bits of its `letters`"):
        anova(np.ones((2, 3)), letters=[np.eye(2), np.eye(3)])
    with pytest.raises(ValueError, match="`letters` have 4 bits, the function 5"):
        anova(polynomial, letters=[np.eye(2), np.eye(2)])
    with pytest.raises(ValueError, match="not among the 2 sites"):
        anova(np.ones((2, 3))).component((0, 2))
