"""Polynomials over GF(2), and the theorem on which learning juntas rests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from identities import boolean_tables

from sparsact.fourier import Spectrum
from sparsact.hardness import algebraic_normal_form, binary_degree, correlation_immunity
from sparsact.hypercube import bits_to_signs, points, signs_to_bits


@given(boolean_tables())
def test_the_polynomial_has_the_values(values):
    coefficients = algebraic_normal_form(values)
    n = len(values).bit_length() - 1
    bits = signs_to_bits(points(n))
    numbers = np.arange(len(values))
    contained = (numbers[:, None] & numbers) == numbers  # monomial M is 1 at the points that hold all of M
    assert np.array_equal(bits_to_signs(contained @ coefficients % 2), values)
    assert bits.shape == (len(values), n)
    assert binary_degree(values) == max(
        (number.bit_count() for number in np.flatnonzero(coefficients).tolist()), default=0
    )


@given(boolean_tables(max_n=5))
def test_immunity_is_its_definition(values):
    f = Spectrum.of(values)
    d = correlation_immunity(values)
    assert not any(value for S, value in f.items() if 1 <= len(S) <= d)
    assert d == f.n or any(value for S, value in f.items() if len(S) == d + 1)


def test_siegenthaler_for_all_functions_of_four_bits():
    """Degree at most p - d for every one of the 65536 functions that are not constant; and it is attained."""
    p = 4
    tables = bits_to_signs(np.arange(2**16)[:, None] >> np.arange(16) & 1)
    H = np.prod(
        np.where(np.arange(16)[:, None, None] >> np.arange(p) & np.arange(16)[:, None] >> np.arange(p) & 1, -1, 1),
        axis=2,
    )
    coefficients = tables @ H
    sizes = np.array([number.bit_count() for number in range(16)])
    orders = np.where((coefficients != 0) & (sizes > 0), sizes, p + 1).min(axis=1) - 1
    normal = signs_to_bits(tables)
    for i in range(p):
        halves = normal.reshape(len(tables), -1, 2, 2**i)
        halves[:, :, 1] ^= halves[:, :, 0]
    degrees = (normal * sizes).max(axis=1)
    constant = orders == p
    assert constant.sum() == 2
    assert (degrees + orders)[~constant].max() == p
    some = np.random.default_rng(0).integers(2**16, size=200)
    assert [correlation_immunity(tables[k]) for k in some] == orders[some].tolist()
    assert [binary_degree(tables[k]) for k in some] == degrees[some].tolist()


def test_bad_tables():
    for call in (algebraic_normal_form, binary_degree, correlation_immunity):
        with pytest.raises(ValueError, match=r"signs \+1 and -1"):
            call([0, 1])
        with pytest.raises(ValueError, match=r"length 2\*\*n"):
            call([1, 1, -1])
