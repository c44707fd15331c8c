"""Remarks of both papers that have no number, and what the documentation says of their proofs, at small sizes."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from sparsact import SparselyActivatedNetwork, bounds
from sparsact.fourier import Spectrum


@pytest.mark.parametrize("seed", range(20))
def test_theorem_8_with_the_constant_that_the_sharper_degree_proves(seed):
    """70 times its degree is at least the sharper one for ns >= 2, over 100 sizes; 16 / ln(2)^4 is what is needed."""
    assert 69 < 16 / log(2) ** 4 < 70
    rng = np.random.default_rng(seed)
    for _ in range(5):
        n, s = int(rng.integers(1, 40)), int(rng.integers(2, 40))
        k, (W, B, epsilon) = int(rng.integers(1, s + 1)), 10 ** rng.uniform(-3, 1, 3)
        assert bounds.sufficient_degree(k, W, epsilon) <= bounds.uniform_degree(n, s, k, W, B, epsilon, c=70)


def test_near_equality_of_that_constant():
    """n s = 2, W = 1, B = 0 and epsilon just below 4, where degree 1 is needed: 60 would not do."""
    assert bounds.sufficient_degree(1, 1.0, 3.99) == 1
    assert (
        bounds.uniform_degree(2, 1, 1, 1.0, 0.0, 3.99, c=70) >= 1 > bounds.uniform_degree(2, 1, 1, 1.0, 0.0, 3.99, c=60)
    )


def test_lemma_10_as_printed_fails_on_one_unit_of_one_input():
    """h(x) = relu(x) at rho = 0: the logarithm of ns / (1 - rho) vanishes, NS = 1/8 does not."""
    network = SparselyActivatedNetwork([1.0], [[1.0]], [0.0])
    assert bounds.noise_sensitivity_bound_paper(1, 1, 1, 1.0, 0.0, 0.0, c=1e9) == 0.0
    assert Spectrum.of(network).noise_sensitivity(0.0) == 0.125
