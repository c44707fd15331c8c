"""Halfspaces and neurons: against brute force over the cube, exact against rounded, closed forms, bounds at large n."""

import time
from fractions import Fraction
from math import comb, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsact.fourier import Halfspace, Neuron, Spectrum
from sparsact.hypercube import points

KINDS = {
    Halfspace: lambda excess: (excess > 0).astype(float),
    Neuron: lambda excess: np.maximum(excess, 0),
}
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
weights = st.lists(st.integers(-4, 4), min_size=1, max_size=8)
halves = st.integers(-14, 14).map(lambda twice: Fraction(twice, 2))


def table(kind, w, b):
    return KINDS[kind](points(len(w)).astype(float) @ np.asarray(w, dtype=float) - float(b))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [float, Fraction])
@given(w=weights, b=halves)
def test_against_brute_force(kind, numbers, w, b):
    unit, values = kind(w, b, numbers), table(kind, w, b)
    spectrum = Spectrum.of(values)
    np.testing.assert_array_equal(unit(points(len(w))), values)
    assert Spectrum.of(unit) == spectrum
    assert float(unit.mean()) == pytest.approx(spectrum.mean(), rel=1e-14)
    assert float(unit.second_moment()) == pytest.approx(spectrum.norm() ** 2, rel=1e-12)
    np.testing.assert_allclose([float(unit.coefficient(S)) for S in spectrum.subsets], spectrum.coefficients, **CLOSE)
    np.testing.assert_allclose(unit.influences().astype(float), spectrum.influences(), **CLOSE)
    np.testing.assert_allclose(unit.weight_by_degree(len(w)).astype(float), spectrum.weight_by_degree(), **CLOSE)
    assert float(unit.total_influence()) == pytest.approx(spectrum.total_influence(), abs=1e-12)
    for rho in (-1, 0, Fraction(3, 4), 1):
        assert float(unit.noise_sensitivity(rho)) == pytest.approx(spectrum.noise_sensitivity(float(rho)), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(w=weights, b=halves)
def test_identities_of_exact_numbers_hold_to_the_last_digit(kind, w, b):
    unit = kind(w, b, Fraction)
    weight = unit.weight_by_degree(len(w)).tolist()
    assert sum(weight) == unit.second_moment()
    assert weight[0] == unit.mean() ** 2
    assert weight[1] == sum(unit.coefficient((i,)) ** 2 for i in range(len(w)))
    assert sum(size * share for size, share in enumerate(weight)) == unit.total_influence() == sum(unit.influences())
    rho = Fraction(2, 3)
    assert unit.noise_sensitivity(rho) == sum((1 - rho**k) * share for k, share in enumerate(weight)) / 2
    answers = [unit.mean(), unit.second_moment(), unit.coefficient((0,)), unit.total_influence(), *unit.influences()]
    assert {type(answer) for answer in answers} == {Fraction}


def test_majority_in_closed_form():
    """Coefficients of majority: O'Donnell, Theorem 5.19, halved as the values are 0 and 1."""
    n, half = 151, 75
    majority = Halfspace([1] * n, 0, Fraction)
    vote = Fraction(comb(n - 1, half), 2**n)
    assert majority.mean() == Fraction(1, 2)
    assert majority.influences().tolist() == [vote / 2] * n
    for k in (1, 3, 7, 101):
        expected = (-1) ** (k // 2) * vote * Fraction(comb(half, k // 2), comb(n - 1, k - 1))
        assert majority.coefficient(range(k)) == expected
    assert majority.coefficient(range(4)) == 0
    assert majority.weight_by_degree(3).tolist() == [
        Fraction(1, 4),
        n * vote**2,
        0,
        comb(n, 3) * (vote * Fraction(half, comb(n - 1, 2))) ** 2,
    ]


def test_ties_are_outside_and_a_sign_of_a_weight_is_a_sign_of_its_coefficients():
    assert Halfspace([1, 1], 0).mean() == 0.25
    assert Halfspace([1, 1], -0.5).mean() == 0.75
    assert Halfspace([3, -2, 1], 1).coefficient((0, 1)) == -Halfspace([3, 2, 1], 1).coefficient((0, 1))
    assert Halfspace([3, 0, 1], 1).coefficient((0, 1)) == 0


def test_a_common_factor_changes_nothing_and_floats_are_the_fractions_they_are():
    w, b = np.array([3, -1, 2, 2, 7]), Fraction(5, 2)
    one = Halfspace(w, b, Fraction)
    for factor in (0.25, Fraction(1, 3), 0.1, 2**60):
        scaled = Halfspace([weight * Fraction(factor) for weight in w.tolist()], b * Fraction(factor), Fraction)
        assert scaled.influences().tolist() == one.influences().tolist()
    assert Halfspace(w * 0.25, 0.625) == Halfspace([Fraction(weight, 4) for weight in w.tolist()], Fraction(5, 8))
    assert Neuron(w * 0.25, 0.625, Fraction).mean() == Neuron(w, b, Fraction).mean() / 4


@pytest.mark.parametrize("kind", KINDS)
def test_floats_at_n_700_are_within_the_bound_they_state(kind):
    """Influences relative, coefficients absolute; the exact answer takes seconds, the rounded one a blink."""
    n, rng = 700, np.random.default_rng(3)
    w = rng.integers(1, 4, n) * rng.choice([-1, 1], n)
    unit, exact = kind(w, 30), kind(w, 30, Fraction)
    start = time.perf_counter()
    influences, coefficients = unit.influences(), [unit.coefficient(range(size)) for size in (0, 1, 2, 5)]
    assert time.perf_counter() - start < 3
    bound = (n + 50) * 2.0**-53
    expected = exact.influences()
    for i in (np.abs(w).tolist().index(size) for size in (1, 2, 3)):
        assert abs(Fraction(influences[i]) / expected[i] - 1) <= bound
    scale = [exact.mean(), *(sqrt(expected[:5].max()),) * 3]  # E|D_S f| <= E|D_i f| <= sqrt(Inf_i)
    for size, value, most in zip((0, 1, 2, 5), coefficients, scale, strict=True):
        assert abs(Fraction(value) - exact.coefficient(range(size))) <= bound * most


@given(w=st.lists(st.integers(-30, 30), min_size=1, max_size=60).filter(any), b=st.integers(-200, 200))
def test_lemma_6_as_mended(w, b):
    """Paper A, Lemma 6, with its constant: AS(g) <= (p / sqrt 2) sqrt(n ln(1 / p)), for g or its complement."""
    g = Halfspace(w, b)
    p = min(g.mean(), 1 - g.mean())
    bound = 0.0 if p < 1e-15 else p / sqrt(2) * sqrt(len(w) * log(1 / p))
    assert g.total_influence() <= bound + 1e-15 * len(w)


def test_lemma_6_is_of_the_right_size_at_n_2000():
    """Majority attains 1 / sqrt(pi ln 2) = 0.68 of it, in the limit of large n."""
    g = Halfspace([1] * 2001, 0)
    bound = 0.5 / sqrt(2) * sqrt(2001 * log(2))
    assert g.total_influence() / bound == pytest.approx(1 / sqrt(np.pi * log(2)), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Halfspace([], 0), "`w` is empty"),
        (lambda: Halfspace([[1, 2]], 0), r"one axis of numbers; got shape \(1, 2\)"),
        (lambda: Halfspace([1, np.nan], 0), "`w` must hold rational numbers .* got nan"),
        (lambda: Halfspace([1, 2], np.inf), "`b` must hold rational numbers"),
        (lambda: Halfspace([1, "2"], 0), "rational numbers"),
        (lambda: Halfspace([1, 2], 0, int), "`numbers` is float or fractions.Fraction"),
        (
            lambda: Halfspace(np.random.default_rng(0).normal(size=5), 0),
            r"in units of their common step, .*: round them",
        ),
        (lambda: Neuron([1e300, 1e-300], 0), r"about 1e\d+: round them"),
        (lambda: Neuron([1, 2], 0).coefficient((2,)), "names coordinate 2"),
        (lambda: Neuron([1, 2], 0).noise_sensitivity(1.5), "`rho` must lie"),
        (lambda: Neuron([1, 2], 0).noise_sensitivity(float("nan")), "`rho` must lie"),
        (lambda: Neuron([3000, 1], 0).noise_sensitivity(0.5), "these sum to 3001"),
        (lambda: Neuron([1, 2], 0).weight_by_degree(3), "`degree` must lie"),
        (lambda: Neuron(range(1, 60), 0).weight_by_degree(9), "lower `degree`"),
        (lambda: Spectrum.of(Neuron([1] * 27, 0)), "ask the unit itself"),
        (lambda: Neuron([1, 2], 0)([[1, 0]]), "must hold signs"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
