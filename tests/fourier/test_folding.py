"""Folding: the expected spectrum exactly, and its estimates within their standard errors."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from sparsact.fourier import Spectrum, estimate_weight_by_degree
from sparsact.fourier.folding import fold, folding_matrix
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork


def test_the_expected_weights_are_exactly_those_of_the_urns():
    """Over all groups and all signs, for every function: n = 3 coordinates in r = 2 groups."""
    n, r = 3, 2
    values = np.random.default_rng(0).normal(size=2**n)
    spectrum = Spectrum.of(values)
    foldings = [
        Spectrum.of(fold(spectrum, np.array(groups), np.array(signs), r)).weight_by_degree()
        for groups in product(range(r), repeat=n)
        for signs in product((1, -1), repeat=n)
    ]
    expected = spectrum.weight_by_degree() @ folding_matrix(r, n)
    np.testing.assert_allclose(np.mean(foldings, axis=0), expected, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_folded_network_is_the_network_at_folded_points(form):
    rng = np.random.default_rng(1)
    net = SparselyActivatedNetwork(rng.normal(size=6), form(rng.normal(size=(6, 11))), rng.normal(size=6))
    groups, signs = rng.integers(4, size=11), rng.choice([-1, 1], size=11)
    values = fold(net, groups, signs, 4)
    np.testing.assert_allclose(values, net(points(4)[:, groups] * signs), atol=1e-12)
    np.testing.assert_allclose(fold(lambda X: net(X), groups, signs, 4), values, atol=1e-12)


def test_estimates_lie_within_their_errors():
    """Five standard errors at six degrees: failure probability below 1e-5 (normal approximation)."""
    rng = np.random.default_rng(2)
    n, r = 9, 5
    net = SparselyActivatedNetwork(rng.normal(size=7), rng.normal(size=(7, n)), rng.normal(size=7))
    expected = Spectrum.of(net(points(n))).weight_by_degree() @ folding_matrix(r, n)
    estimate = estimate_weight_by_degree(net, n, n_groups=r, n_samples=600, rng=rng)
    assert estimate.n_samples == 600
    assert (estimate.standard_error > 0).all()
    assert (np.abs(estimate.value - expected) < 5 * estimate.standard_error).all()


def test_rows_of_the_matrix_are_chances():
    chances = folding_matrix(7, 20)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert chances[3, 3] == pytest.approx(6 / 7 * 5 / 7)
    degrees, groups = np.indices(chances.shape)
    assert not chances[(groups > degrees) | ((groups - degrees) % 2 == 1)].any()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"n_groups": 0}, "n_groups"), ({"n_groups": 21}, "n_groups"), ({"n_samples": 1}, "n_samples"), ({"n": 4}, "`n`")],
)
def test_bad_options_are_refused(options, complaint):
    net = SparselyActivatedNetwork([1], [[1, 2, 3]], [0])
    arguments = {"n": 3, "n_groups": 2, "n_samples": 5, **options}
    with pytest.raises(ValueError, match=complaint):
        estimate_weight_by_degree(net, rng=np.random.default_rng(0), **arguments)
