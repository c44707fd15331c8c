"""Variance and best linear error, against what the Fourier coefficients give exactly."""

import numpy as np
import pytest

from sparsact.fourier import walsh_hadamard
from sparsact_papers.data import Composed, Cube, Multilinear, Polynomial, describe, random_hypercube, random_subspace


@pytest.mark.parametrize("seed", range(3))
def test_a_hypercube_function_on_the_cube(seed):
    """On uniform points x_S has mean square 3^-|S|. Five standard errors, six times: fails once in 3 * 10^5."""
    rng = np.random.default_rng(seed)
    f = random_hypercube(5, rng=rng)
    sizes = np.bitwise_count(np.arange(2**5))
    weights = walsh_hadamard(f.table) ** 2 / 3.0**sizes
    found = describe(f, Cube(5), m=20_000, rng=rng)
    assert abs(found.variance - weights[sizes > 0].sum()) < 5 * found.variance_error
    assert abs(found.linear_mse - weights[sizes > 1].sum()) < 5 * found.linear_mse_error
    assert 0 < found.variance_error < 0.05 * found.variance
    assert "variance" in str(found)
    assert "20000 points" in str(found)


def test_a_linear_target_leaves_no_error_whatever_its_mean_and_the_rank_of_the_rows():
    rng = np.random.default_rng(0)
    domain = random_subspace(9, 2, rng=rng)
    linear = Composed(Polynomial(2, 1, [1e6, 1.0, -0.5]), domain.basis.T)
    found = describe(linear, domain, m=500, rng=rng)
    assert found.variance > 0.1
    assert found.linear_mse < 1e-15


def test_what_does_not_fit_is_refused():
    rng, f = np.random.default_rng(0), Multilinear([1, -1, -1, 1])
    with pytest.raises(ValueError, match=r"2 columns, points of Cube\(n=3\) have 3: compose them"):
        describe(f, Cube(3), rng=rng)
    with pytest.raises(ValueError, match="must be 30 or more; got 29"):
        describe(f, Cube(2), m=29, rng=rng)
