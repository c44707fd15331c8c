"""Spectra under product measures, beside sums over all points: Parseval, influences, noise, Shapley values."""

from itertools import chain, combinations

import numpy as np
import pytest

from sparsact import LowDegreeRegressor, SparseFourierRegressor
from sparsact.fourier import Spectrum, anova, interactions
from sparsact.hypercube import characters, points

N, CUBE = 7, points(7)
P = np.array([0.05, 0.5, 0.3, 0.9, 0.12, 0.5, 0.71])
MEASURE = np.where(CUBE < 0, P, 1 - P).prod(axis=1)
STANDARD = (CUBE - (1 - 2 * P)) / (2 * np.sqrt(P * (1 - P)))
VALUES = np.random.default_rng(3).normal(size=2**N)
SUBSETS = list(chain.from_iterable(combinations(range(N), size) for size in range(N + 1)))
SPECTRA = {"dense": Spectrum.of(VALUES, measure=P), "sparse": Spectrum.of(VALUES).to_sparse().under(P)}


@pytest.mark.parametrize("spectrum", SPECTRA.values(), ids=SPECTRA)
class TestByBruteForce:
    def test_coefficients(self, spectrum):
        expected = (MEASURE * VALUES) @ characters(STANDARD, SUBSETS)
        np.testing.assert_allclose([spectrum[subset] for subset in SUBSETS], expected, atol=1e-13)

    def test_mean_variance_and_norm(self, spectrum):
        mean = MEASURE @ VALUES
        assert spectrum.mean() == pytest.approx(mean)
        assert spectrum.variance() == pytest.approx(MEASURE @ (VALUES - mean) ** 2)
        assert spectrum.norm() ** 2 == pytest.approx(MEASURE @ VALUES**2)

    def test_an_influence_is_the_mean_variance_along_a_coordinate(self, spectrum):
        table, weights = (values.reshape((2,) * N) for values in (VALUES, MEASURE))
        expected = []
        for i in range(N):
            one, two = (np.take(table, bit, axis=N - 1 - i) for bit in (0, 1))
            expected.append((P[i] * (1 - P[i]) * (one - two) ** 2 * weights.sum(axis=N - 1 - i)).sum())
        np.testing.assert_allclose(spectrum.influences(), expected)
        assert spectrum.total_influence() == pytest.approx(sum(expected))

    def test_noise_draws_coordinates_anew(self, spectrum):
        rho = 0.6
        same = CUBE[:, None] == CUBE[None]
        chance = (rho * same + (1 - rho) * np.where(CUBE < 0, P, 1 - P)[None]).prod(axis=2)  # of y, given x
        np.testing.assert_allclose(spectrum.noise(rho).values(), chance @ VALUES, atol=1e-13)
        assert spectrum.noise_stability(rho) == pytest.approx(MEASURE @ (VALUES * (chance @ VALUES)))
        changes = (VALUES[:, None] - VALUES) ** 2 / 4
        assert spectrum.noise_sensitivity(rho) == pytest.approx(MEASURE @ (chance * changes).sum(axis=1))
        with pytest.raises(ValueError, match=r"`rho` must lie in \[0, 1\] under unequal frequencies"):
            spectrum.noise(-0.5)

    def test_truncation_is_the_best_polynomial_under_the_measure(self, spectrum):
        monomials = characters(CUBE, [subset for subset in SUBSETS if len(subset) <= 2])
        root = np.sqrt(MEASURE)
        best = np.linalg.lstsq(root[:, None] * monomials, root * VALUES, rcond=None)[0]
        np.testing.assert_allclose(spectrum.truncate(2)(CUBE), monomials @ best, atol=1e-11)
        assert spectrum.tail(2) == pytest.approx(MEASURE @ (VALUES - monomials @ best) ** 2)

    def test_it_is_the_same_function(self, spectrum):
        np.testing.assert_allclose(spectrum.values(), VALUES, atol=1e-13)
        np.testing.assert_allclose(spectrum(CUBE), VALUES, atol=1e-13)
        fixed = spectrum.restrict({1: -1, 4: 1})
        np.testing.assert_allclose(fixed.values(), VALUES[(CUBE[:, 1] < 0) & (CUBE[:, 4] > 0)], atol=1e-13)
        np.testing.assert_array_equal(fixed.frequencies, P[[0, 2, 3, 5, 6]])
        assert spectrum.under("uniform").frequencies is None
        np.testing.assert_allclose((spectrum - Spectrum.of(VALUES)).norm(), 0, atol=1e-13)
        np.testing.assert_allclose(spectrum.under(0.2).under(P).to_dense().coefficients, SPECTRA["dense"].coefficients)

    @pytest.mark.parametrize(("index", "order"), [("Moebius", N), ("SII", 1), ("SII", 2), ("BII", 2), ("STII", 2)])
    def test_interactions_are_of_the_game_of_means(self, spectrum, index, order):
        point = CUBE[37]
        game = [
            np.average(VALUES[match], weights=MEASURE[match])
            for match in ((CUBE[:, list(U)] == point[list(U)]).all(axis=1) for U in SUBSETS)
        ]
        numbers = [sum(1 << i for i in subset) for subset in SUBSETS]
        table = np.empty(2**N)
        table[numbers] = game  # v(U), whose players are absent at bit 0
        found, expected = (
            interactions(spectrum, index, order, point=point, measure=P),
            interactions(table, index, order),
        )
        assert found.reference is None
        for subset in SUBSETS:
            assert found[subset] == pytest.approx(expected[subset], abs=1e-11)


def test_equal_frequencies_are_the_uniform_route_to_the_bit():
    for uniform in (Spectrum.of(VALUES), Spectrum.of(VALUES).to_sparse(0.05)):
        for measure in (0.5, [0.5] * N, "uniform"):
            assert uniform.under(measure) is uniform
    point = CUBE[3]
    one, two = (interactions(VALUES, "SII", point=point, measure=measure) for measure in ("uniform", 0.5))
    assert dict(one.items()) == dict(two.items())
    assert repr(SPECTRA["dense"]).startswith("<Spectrum on 7 coordinates, degree 7, x standardised: ")


def test_many_coordinates():
    """For x0 x1 x69 by hand; a long product is refused, because it has too many parts."""
    p = np.full(70, 0.5)
    p[[0, 69]] = 0.1, 0.2
    found = Spectrum.of({(0, 1, 69): 2.0}, n=70, measure=p)
    assert dict(found.items()) == pytest.approx({(1,): 2 * 0.8 * 0.6, (0, 1): 0.72, (1, 69): 1.28, (0, 1, 69): 0.96})
    with pytest.raises(ValueError, match="a product of 70 coordinates has too many subsets to list; truncate"):
        Spectrum.of({tuple(range(70)): 1.0}, n=70, measure=0.3)


@pytest.mark.parametrize("learner", [LowDegreeRegressor(2), SparseFourierRegressor(2)])
def test_the_measure_of_the_rows(learner):
    rng = np.random.default_rng(1)
    X = (rng.random((300, 5)) < [0.1, 0.5, 0.8, 0.3, 0.2]).astype(int)
    y = X[:, 0] + 2.0 * X[:, 1] * X[:, 3] + rng.normal(0, 0.1, 300)
    model = learner.fit(X, y)
    np.testing.assert_allclose(model.frequencies_, X.mean(axis=0))
    found = Spectrum.of(model, measure="data")
    expected = anova(model.spectrum_.values().reshape((2,) * 5), [[1 - p, p] for p in X.mean(axis=0)[::-1]])
    np.testing.assert_allclose(found.weight_by_degree()[1:], expected.variance_by_degree(), atol=1e-12)
    np.testing.assert_allclose(found.influences(), expected.variance_by_site()[::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("measure", "line"),
    [
        ("data", "got 'data'; pass a fitted polynomial itself, or the frequencies of its rows"),
        ("Gaussian", "the probability of bit 1, or one for each coordinate; got 'Gaussian'"),
        ([0.5, 0.1], r"one for each of 7 coordinates; got shape \(2,\)"),
        ([0.5] * 6 + [1.0], "coordinate 6 has 1: fix it by `restrict`"),
        (0.0, "coordinate 0 has 0"),
        (np.nan, "`measure` must be finite"),
    ],
)
def test_what_is_no_measure(measure, line):
    with pytest.raises(ValueError, match=line):
        Spectrum.of(VALUES, measure=measure)


def test_a_measure_has_a_point_and_no_reference():
    for options in ({}, {"point": CUBE[0], "reference": CUBE[1]}):
        with pytest.raises(ValueError, match="with `measure` pass `point`, not `reference`"):
            interactions(VALUES, measure=0.3, **options)
