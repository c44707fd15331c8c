"""Every identity, over both ways to store a spectrum."""

import numpy as np
import pytest
from hypothesis import given
from identities import IDENTITIES, real_tables, tables

from sparsact.fourier import Spectrum
from sparsact.hypercube import points

STORAGES = {"dense": Spectrum.to_dense, "sparse": Spectrum.to_sparse}


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.__name__)
@given(values=tables())
def test_identity(identity, values):
    spectrum = Spectrum.of(values)
    for stored in STORAGES.values():
        identity(stored(spectrum), values)


@given(values=real_tables(max_n=4))
def test_noise_sensitivity_over_all_flips(values):
    """NS by summing every point and every set of flipped coordinates with its probability."""
    f, numbers = Spectrum.of(values), np.arange(len(values))
    for rho in (-1.0, -0.3, 0.0, 0.7, 1.0):
        flip = (1 - rho) / 2
        exact = sum(
            flip ** flips.bit_count() * (1 - flip) ** (f.n - flips.bit_count()) * np.mean(change**2) / 4
            for flips in numbers.tolist()
            for change in [values - values[numbers ^ flips]]
        )
        np.testing.assert_allclose(f.noise_sensitivity(rho), exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n", [1, 3, 7, 11])
def test_parity_has_total_influence_n(storage, n):
    parity = STORAGES[storage](Spectrum.of(points(n).prod(axis=1)))
    assert parity.total_influence() == n
    assert parity.influences().tolist() == [1.0] * n
    assert parity.degree() == n
    assert parity.top(1) == [(tuple(range(n)), 1.0)]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("n", "i"), [(1, 0), (4, 2), (9, 8)])
def test_dictator_has_total_influence_1(storage, n, i):
    dictator = STORAGES[storage](Spectrum.of(points(n)[:, i]))
    assert dictator.total_influence() == 1
    assert dictator.influences()[i] == 1
    assert dictator.noise_sensitivity(0.5) == 0.25  # Pr[the one bit flips]


@pytest.mark.parametrize("variables", [(), (3,), (0, 5), (1, 2, 6)])
def test_a_junta_has_degree_and_influences_only_on_its_variables(variables):
    rng = np.random.default_rng(7)
    codes = (points(7)[:, list(variables)] < 0) @ (1 << np.arange(len(variables)))
    junta = Spectrum.of(rng.normal(size=2 ** len(variables))[codes])
    assert junta.degree(tolerance=1e-12) == len(variables)
    assert tuple(np.flatnonzero(junta.influences() > 1e-12)) == variables
