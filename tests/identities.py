"""The identities of the field, each for any function on the cube: the specification of whatever computes a spectrum.

Every identity takes a spectrum and the table of values of the same function, and asserts. Run all of ``IDENTITIES``.
"""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparsact import fourier
from sparsact.fourier import Spectrum
from sparsact.hypercube import points

RHOS = (-1.0, -0.3, 0.0, 0.4, 0.9, 1.0)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}  # float64; values below are at most 8


def real_tables(max_n=6):
    """Tables of real functions of 0 to ``max_n`` coordinates."""
    reals = st.floats(-8, 8, allow_subnormal=False)
    return st.integers(0, max_n).flatmap(lambda n: arrays(np.float64, 2**n, elements=reals))


def boolean_tables(max_n=6):
    """Tables of functions with values +-1."""
    return st.integers(0, max_n).flatmap(lambda n: arrays(np.float64, 2**n, elements=st.sampled_from([1.0, -1.0])))


def tables(max_n=6):
    return real_tables(max_n) | boolean_tables(max_n)


def parseval(f: Spectrum, values):
    np.testing.assert_allclose(f.norm() ** 2, np.mean(values**2), **CLOSE)
    np.testing.assert_allclose(f.mean(), np.mean(values), **CLOSE)
    np.testing.assert_allclose(f.variance(), np.var(values), **CLOSE)


def inversion(f: Spectrum, values):
    np.testing.assert_allclose(f.values(), values, **CLOSE)
    np.testing.assert_allclose(f(points(f.n)), values, **CLOSE)


def transform_twice(f: Spectrum, values):
    twice = fourier.walsh_hadamard(fourier.walsh_hadamard(values))
    np.testing.assert_allclose(twice * len(values), values, **CLOSE)


def influence_is_its_definition(f: Spectrum, values):
    np.testing.assert_allclose(f.influences(), fourier.influences(values), **CLOSE)


def total_influence_is_average_sensitivity(f: Spectrum, values):
    np.testing.assert_allclose(f.total_influence(), fourier.average_sensitivity(values), **CLOSE)
    np.testing.assert_allclose(f.total_influence(), fourier.sensitivity(values).mean(), **CLOSE)
    np.testing.assert_allclose(f.total_influence(), f.influences().sum(), **CLOSE)


def poincare(f: Spectrum, values):
    assert f.variance() <= f.total_influence() + 1e-10


def noise_sensitivity_is_half_of_what_stability_lacks(f: Spectrum, values):
    for rho in RHOS:
        lacking = (f.norm() ** 2 - f.noise_stability(rho)) / 2
        np.testing.assert_allclose(f.noise_sensitivity(rho), lacking, **CLOSE)


def noise_is_self_adjoint(f: Spectrum, values):
    for rho in RHOS:
        correlation = np.mean(values * f.noise(rho).values())
        np.testing.assert_allclose(f.noise_stability(rho), correlation, **CLOSE)


def noise_semigroup(f: Spectrum, values):
    for a, b in [(0.4, 0.9), (-0.3, 0.4), (1.0, -1.0), (0.0, 0.5)]:
        np.testing.assert_allclose(f.noise(a).noise(b).values(), f.noise(a * b).values(), **CLOSE)


def claim_2_1_bounds_the_tail(f: Spectrum, values):
    """Paper A, Claim 2.1: sum of fhat(T)^2 over |T| > d is at most 2 NS_rho / (1 - rho^d)."""
    for rho in (0.0, 0.4, 0.9):
        for d in range(1, f.n + 1):
            assert f.tail(d) <= 2 * f.noise_sensitivity(rho) / (1 - rho**d) + 1e-10


def truncation_is_orthogonal(f: Spectrum, values):
    for d in range(-1, f.n + 1):
        low = f.truncate(d)
        assert low.degree() <= max(d, 0)
        np.testing.assert_allclose((f - low).norm() ** 2, f.tail(d), **CLOSE)


def restrictions_average_to_the_rest(f: Spectrum, values):
    """The mean of the two restrictions of a coordinate holds the coefficients that leave it out."""
    for i in range(f.n):
        mean = (f.restrict({i: 1}) + f.restrict({i: -1})) / 2
        np.testing.assert_allclose(f.norm() ** 2 - mean.norm() ** 2, f.influences()[i], **CLOSE)


IDENTITIES = [
    parseval,
    inversion,
    transform_twice,
    influence_is_its_definition,
    total_influence_is_average_sensitivity,
    poincare,
    noise_sensitivity_is_half_of_what_stability_lacks,
    noise_is_self_adjoint,
    noise_semigroup,
    claim_2_1_bounds_the_tail,
    truncation_is_orthogonal,
    restrictions_average_to_the_rest,
]
