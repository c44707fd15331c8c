"""Exact spectra of networks: against values at every point, by either road, and beyond any table."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from sparsact import SparselyActivatedNetwork
from sparsact.fourier import Halfspace, Neuron, Spectrum, networks
from sparsact.fourier.coefficients import DenseCoefficients, SparseCoefficients
from sparsact.hypercube import points


def network(rng, s, n, density=1.0):
    W = rng.normal(size=(s, n)) * (rng.random((s, n)) < density)
    return SparselyActivatedNetwork(rng.normal(size=s), W if density == 1 else sp.csr_array(W), rng.normal(size=s))


def indexing(b):
    """The data bit that the address bits name, as 0 or 1: one unit an address."""
    addresses = sp.csr_array(points(b).astype(float))
    return SparselyActivatedNetwork(np.ones(2**b), sp.hstack([addresses, sp.eye_array(2**b)]), np.full(2**b, float(b)))


def agree(spectrum, net):
    expected = Spectrum.of(net(points(net.n)))
    np.testing.assert_allclose(spectrum.to_dense().coefficients, expected.coefficients, atol=1e-12)


@pytest.mark.parametrize(("s", "n", "density"), [(1, 3, 1.0), (5, 7, 1.0), (6, 9, 0.3), (3, 1, 0.5), (40, 13, 0.2)])
def test_against_values_at_every_point(s, n, density):
    net = network(np.random.default_rng(s), s, n, density)
    agree(Spectrum.of(net), net)


@pytest.mark.parametrize(
    ("ordering", "storage"), [(0, SparseCoefficients), (10**9, DenseCoefficients)], ids=["list", "table"]
)
def test_both_roads(ordering, storage):
    for density in (1.0, 0.3, 0.0):
        net = network(np.random.default_rng(7), 11, 8, density)
        spectrum = networks.spectrum_of_network(net, ordering=ordering)
        assert isinstance(spectrum.storage, storage)
        agree(spectrum, net)


def test_no_units_are_the_function_zero():
    none = SparselyActivatedNetwork([], np.zeros((0, 5)), [])
    assert Spectrum.of(none) == Spectrum.of({(): 0.0}, n=5)
    assert Spectrum.of(SparselyActivatedNetwork([], np.zeros((0, 500)), [])).norm() == 0
    assert Spectrum.of(SparselyActivatedNetwork([2.0], np.zeros((1, 500)), [-3.0])).mean() == 6


def test_many_low_blocks():
    """The table is filled block by block of the high coordinates."""
    net = network(np.random.default_rng(8), 5, 9)
    np.testing.assert_allclose(networks.values_on_the_cube(net.u, net.W, net.b, 16), net(points(9)), atol=1e-12)


def test_units_that_read_the_same_inputs_share_a_table():
    W = sp.csr_array([[1.0, 0, -1, 0], [0, 0, 0, 0], [2, 0, 3, 0], [0, 5, 0, 0]])
    assert networks.units_by_inputs(W) == {(0, 2): [0, 2], (): [1], (1,): [3]}


@pytest.mark.parametrize("b", [2, 4, 7])
def test_indexing_in_closed_form(b):
    """On 2^b + b coordinates, up to 135: coefficients, influences, and f^2 = f."""
    spectrum = Spectrum.of(indexing(b))
    assert spectrum.n == b + 2**b
    assert spectrum.mean() == 0.5
    assert spectrum.degree() == b + 1
    assert np.array_equal(np.abs(spectrum.to_sparse().coefficients[1:]), np.full(4**b, 2.0 ** -(b + 1)))
    np.testing.assert_allclose(spectrum.influences(), [1 / 8] * b + [2.0**-b / 4] * 2**b, rtol=1e-14)
    assert spectrum.norm() ** 2 == pytest.approx(0.5, rel=1e-14)


@pytest.mark.slow
def test_indexing_on_1034_coordinates():
    start = time.perf_counter()
    spectrum = Spectrum.of(indexing(10))
    assert time.perf_counter() - start < 60
    assert len(spectrum.coefficients) == 1 + 4**10
    assert spectrum.total_influence() == 10 / 8 + 1 / 4


def test_a_network_of_one_unit_is_that_unit():
    w = [3, -1, 2, 0, 5, 1, 1]
    net = SparselyActivatedNetwork([1.0], [w], [1.5])
    assert Spectrum.of(net) == Spectrum.of(Neuron(w, 1.5))
    step = SparselyActivatedNetwork([2.0, -2.0], [w, w], [1.0, 1.5])  # sums are odd: no value between 1 and 2
    assert Spectrum.of(step) == Spectrum.of(Halfspace(w, 1))


def test_too_many_coefficients_name_the_remedy():
    with pytest.raises(ValueError, match=r"27 inputs and a unit that reads 27.*estimate_"):
        Spectrum.of(SparselyActivatedNetwork([1.0], np.ones((1, 27)), [0.0]))
