import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.common.networks import network_of, pairs, spectrum_of, zigzag
from sparsact_papers.paper_a.weight_by_degree import (
    measure,
)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_the_zigzag_is_the_parity_of_all_inputs(n):
    X = points(n)
    np.testing.assert_allclose(zigzag(np.arange(n), n)(X), X.prod(axis=1), atol=1e-12)


def test_the_pair_is_twice_the_first_input_with_k_active_units():
    X = points(4)
    np.testing.assert_array_equal(pairs(4, 3)(X), 6.0 * X[:, 0])
    assert set(pairs(4, 3).n_active(X)) == {3}


@pytest.mark.parametrize("model", ["sparse", "dense", "parity", "copies"])
def test_every_network_has_unit_scale_and_the_spectrum_of_the_library(model):
    network = network_of(model, 6, 11, 2, seed=5)
    np.testing.assert_allclose(network.scale().W, 1)
    np.testing.assert_allclose(
        spectrum_of(network).coefficients, Spectrum.of(network(points(6))).coefficients, atol=1e-12
    )


def test_the_dense_network_has_the_b_of_the_sparse_one():
    sparse, dense = (network_of(model, 7, 13, 2, seed=1) for model in ("sparse", "dense"))
    np.testing.assert_allclose(dense.scale().B, sparse.scale().B)
    assert dense.n_active(points(7)).max() > sparse.n_active(points(7)).max() == 2


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match="must be sparse"):
        network_of("deep", 5, 4, 1, 0)


def test_a_measurement_is_repeatable_and_its_tail_falls_to_nothing():
    task = {"model": "sparse", "n": 7, "s": 9, "k": 2, "seed": 3}
    found = measure(**task)
    assert found == measure(**task)
    assert found["tail_share"][0] == 1
    assert found["tail_share"][-1] == 0
    assert np.all(np.diff(found["tail_share"]) <= 0)
    assert 0 < found["tail_over_bound"] <= 1


@pytest.mark.parametrize(("n", "k"), [(1, 2), (4, 1), (5, 3)])
def test_the_extremal_networks_attain_the_bound(n, k):
    found = measure(model="extremal", n=n, s=k * 2**n, k=k, seed=0)
    assert (found["W"], found["most_active"]) == (pytest.approx(1), k)
    assert found["tail_over_bound"] == pytest.approx(1, rel=1e-12)
    assert found["variance"] == pytest.approx(4 * k * k / n)


def test_parity_has_all_of_its_weight_at_the_top():
    assert measure(model="parity", n=6, s=7, k=1, seed=0)["tail_share"][5] == pytest.approx(1)
