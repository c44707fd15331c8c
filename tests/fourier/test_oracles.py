"""Cross-checks against boofun and sympy, which share no code with us."""

import itertools
import warnings

import numpy as np
import pytest
import sympy

from sparsact.fourier import Spectrum
from sparsact.hypercube import bits_to_signs

RNG = np.random.default_rng(2024)
NUMBERS = np.arange(32)
# Truth tables as bits, bit 1 is true; most are asymmetric, so that a wrong bit order shows.
BOOLEAN_EXAMPLES = {
    "random3": RNG.integers(2, size=8),
    "random4": RNG.integers(2, size=16),
    "random6": RNG.integers(2, size=64),
    "majority5": (np.bitwise_count(NUMBERS) > 2).astype(int),
    "dictator3": NUMBERS >> 3 & 1,
    "address": np.array([(p >> (2 + (p & 3))) & 1 for p in range(64)]),
    "halfspace": ((NUMBERS[:, None] >> np.arange(5) & 1) @ [1, 2, 4, 3, 7] > 8).astype(int),
}


@pytest.mark.filterwarnings("ignore:Numba optimization failed", "ignore::Warning:numba")  # beside skglm's Numba
@pytest.mark.parametrize("bits", BOOLEAN_EXAMPLES.values(), ids=BOOLEAN_EXAMPLES)
class TestBoofun:
    @pytest.fixture
    def theirs(self, bits):
        with warnings.catch_warnings():  # it warns that numba is absent
            warnings.simplefilter("ignore")
            import boofun  # seconds, which collection need not take
        return boofun.create(bits.tolist())

    @pytest.fixture
    def ours(self, bits):
        return Spectrum.of(bits_to_signs(bits))

    def test_coefficients(self, ours, theirs):
        np.testing.assert_allclose(ours.coefficients, theirs.fourier(), atol=1e-12)

    def test_influences(self, ours, theirs):
        np.testing.assert_allclose(ours.influences(), theirs.influences(), atol=1e-12)
        assert ours.total_influence() == pytest.approx(theirs.total_influence())

    def test_noise_stability(self, ours, theirs):
        for rho in (0.0, 0.3, 0.95):
            assert ours.noise_stability(rho) == pytest.approx(theirs.noise_stability(rho))

    def test_weights_and_degree(self, ours, theirs):
        weights = theirs.spectral_weight_by_degree()
        np.testing.assert_allclose(
            ours.weight_by_degree(), [weights.get(k, 0.0) for k in range(ours.n + 1)], atol=1e-12
        )
        assert ours.degree() == max(k for k, weight in weights.items() if weight > 1e-12)
        assert ours.variance() == pytest.approx(theirs.variance())

    @pytest.mark.parametrize("p", [0.03, 0.5, 0.8])
    def test_biased_measures(self, bits, theirs, p):
        """Theirs is the mean square of the derivative: ours, the mean variance along i, has a factor 4 p (1 - p)."""
        from boofun.analysis import p_biased

        ours, coefficients = Spectrum.of(bits_to_signs(bits), measure=p), np.zeros(len(bits))
        for subset, coefficient in p_biased.p_biased_fourier_coefficients(theirs, p).items():
            coefficients[subset] = coefficient
        np.testing.assert_allclose(ours.coefficients, coefficients, atol=1e-9)  # theirs drops what is below 1e-10
        derivatives = [p_biased.p_biased_influence(theirs, i, p) for i in range(ours.n)]
        np.testing.assert_allclose(ours.influences(), 4 * p * (1 - p) * np.array(derivatives), atol=1e-12)
        assert ours.noise_stability(0.4) == pytest.approx(p_biased.p_biased_noise_stability(theirs, 0.4, p))
        assert ours.variance() == pytest.approx(p_biased.p_biased_variance(theirs, p))

    def test_restriction(self, ours, theirs):
        restricted = ours.restrict({1: -1})
        np.testing.assert_allclose(restricted.coefficients, theirs.fix(1, 1).fourier(), atol=1e-12)


def test_sympy_transform():
    values = [3, -1, 4, 1, -5, 9, 2, 6]
    exact = [term / 8 for term in sympy.fwht(values)]
    assert Spectrum.of(values).coefficients.tolist() == [float(term) for term in exact]


def test_sympy_expansion_of_a_polynomial_of_signs():
    """Expand (x0 + 2 x1 x3 - 1)^3 (1 - x2)^2 and reduce x^2 = 1 by hand of sympy."""
    x = sympy.symbols("x0:4")
    formula = (x[0] + 2 * x[1] * x[3] - 1) ** 3 * (1 - x[2]) ** 2
    expected: dict[tuple[int, ...], float] = {}
    for powers, coefficient in sympy.Poly(formula, *x).terms():
        subset = tuple(i for i, power in enumerate(powers) if power % 2)
        expected[subset] = expected.get(subset, 0.0) + float(coefficient)
    values = [
        float(formula.subs(dict(zip(x, signs[::-1], strict=True)))) for signs in itertools.product([1, -1], repeat=4)
    ]
    assert Spectrum.of(values) == Spectrum.of(expected, n=4)
