"""The certificate of a network's sensitivity from its active units; the chain of bounds is tested with the papers."""

from __future__ import annotations

import networks
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from sparsact import SparselyActivatedNetwork
from sparsact.bounds import sensitivity_certificate, sensitivity_from_activity
from sparsact.hypercube import points


def test_the_formula_row_by_row():
    network = networks.random(6, 5, np.random.default_rng(0), 0.3)
    X = points(6)
    slopes = network.active(X) @ (np.abs(network.u)[:, None] * np.abs(network.W))
    assert_allclose(sensitivity_certificate(network, X), 4 * (slopes**2).sum(axis=1))


def test_sparse_weights_and_blocks():
    """With 4,099 columns a block has 1,023 rows."""
    network = networks.index(4)
    thin = SparselyActivatedNetwork(network.u, sp.csr_array(network.W), network.b)
    rng = np.random.default_rng(1)
    X = rng.choice([1.0, -1.0], (37, 20))
    assert_allclose(sensitivity_certificate(thin, X), sensitivity_certificate(network, X))
    W = sp.random_array((5, 4_099), density=0.01, rng=rng, format="csr")
    wide, X = SparselyActivatedNetwork(np.ones(5), W, np.zeros(5)), rng.choice([1, -1], (1_100, 4_099)).astype(np.int8)
    slopes = wide.active(X) @ abs(W).toarray()
    assert_allclose(sensitivity_certificate(wide, X), 4 * (slopes**2).sum(axis=1))
    assert sensitivity_from_activity(thin, np.full(16, 1 / 32), k=1) == pytest.approx(4 * (4 + 1 / 4) / 2)


def test_the_index_function_has_half_of_the_worst_case():
    """One of its units is on at half of the points: 4 * (b + 1/4) / 2."""
    assert sensitivity_certificate(networks.index(3), points(11)).mean() == pytest.approx(4 * (3 + 1 / 4) / 2)


@pytest.mark.parametrize(
    ("probabilities", "k", "told"),
    [
        ([0.5], 1, r"one number per unit, shape \(2,\)"),
        ([0.5, 1.5], 1, r"must lie in \[0, 1\]; they span \[0.5, 1.5\]"),
        ([0.5, np.nan], 1, "must be finite"),
        ([0.5, 0.5], 0, "`k` must be a whole number from 1"),
        ([0.5, 0.5], 3, "`k` must not exceed `s`"),
    ],
)
def test_bad_probabilities(probabilities, k, told):
    with pytest.raises(ValueError, match=told):
        sensitivity_from_activity(networks.copies(1), probabilities, k)
