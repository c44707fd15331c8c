"""Spectra of any size: what float64 holds comes out right, what it does not is infinite or zero."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from hypothesis import given
from hypothesis import strategies as st

from sparsact.fourier import Spectrum

SUBSETS = [(), (0,), (2,), (0, 3), (1, 2), (0, 1, 4)]
PLAIN = [3.0, -1.0, 0.5, 2.0, -0.25, 0.125]
FORMS = [lambda spectrum: spectrum, Spectrum.to_dense]
RHO = 0.5


def spectrum(coefficients):
    return Spectrum.from_coefficients(coefficients, SUBSETS, n=5)


def exact(coefficients):
    """Sums as fractions: total influence, stability, sensitivity, variance, and the weights."""
    weights = [Fraction(0)] * 6
    for subset, value in zip(SUBSETS, coefficients, strict=True):
        weights[len(subset)] += Fraction(value) ** 2
    kept = [Fraction(RHO) ** degree for degree in range(6)]
    return {
        "total_influence": sum(degree * weight for degree, weight in enumerate(weights)),
        "noise_stability": sum(share * weight for share, weight in zip(kept, weights, strict=True)),
        "noise_sensitivity": sum((1 - share) / 2 * weight for share, weight in zip(kept, weights, strict=True)),
        "variance": sum(weights[1:]),
    }, weights


def as_float(value):
    try:
        return float(value)
    except OverflowError:
        return np.inf


def found(of):
    return {
        "total_influence": of.total_influence(),
        "noise_stability": of.noise_stability(RHO),
        "noise_sensitivity": of.noise_sensitivity(RHO),
        "variance": of.variance(),
    }


@pytest.mark.parametrize("form", FORMS)
@given(exponents=st.lists(st.integers(-1070, 1015), min_size=6, max_size=6))
def test_every_measure_matches_exact_arithmetic(form, exponents):
    """Each coefficient of a size of its own."""
    coefficients = np.ldexp(PLAIN, exponents)
    of = form(spectrum(coefficients))
    sums, weights = exact(coefficients.tolist())
    for name, value in found(of).items():
        assert value == pytest.approx(as_float(sums[name]), rel=1e-12, abs=1e-322), name
    for ours, weight in zip(of.weight_by_degree(), weights, strict=True):
        assert ours == pytest.approx(as_float(weight), rel=1e-12, abs=1e-322)
    assert of.tail(1) == pytest.approx(as_float(sum(weights[2:])), rel=1e-12, abs=1e-322)


@grid(form=FORMS, power=[-1000, -540, -401, 0, 399, 401, 540, 1000])
def test_the_norm_matches_the_function_in_another_unit(form, power):
    plain, scaled = form(spectrum(PLAIN)), form(spectrum(np.ldexp(PLAIN, power)))
    assert scaled.norm() == np.ldexp(plain.norm(), power)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_float_is_infinite_and_never_nan(form):
    huge = form(spectrum([1e200, 1e200, 0.0, 1.0, 0.0, 1e-200]))
    assert huge.norm() == pytest.approx(np.sqrt(2) * 1e200)
    np.testing.assert_array_equal(huge.weight_by_degree(), [np.inf, np.inf, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(huge.influences(), [np.inf, 0.0, 0.0, 1.0, 0.0])
    assert huge.tail(1) == 1.0
    assert huge.noise_sensitivity(1.0) == 0.0
    assert huge.noise_stability(0.0) == np.inf
    constant = form(spectrum([1e200, 0.0, 0.0, 3.0, 0.0, 0.0]))
    assert (constant.total_influence(), constant.variance()) == (18.0, 9.0)
    assert form(spectrum(np.zeros(6))).norm() == 0.0
