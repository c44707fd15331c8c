"""Points of the four distributions, and what is measured on points not seen."""

import numpy as np
import pytest

from sparsact_papers.common import distributions
from sparsact_papers.paper_a import any_distribution as experiment

M = 20_000  # means of signs are within 6 / sqrt(M) of their expectations: failure probability below 1e-6 for all


@pytest.mark.parametrize("name", distributions.DISTRIBUTIONS)
def test_points_have_the_moments_of_their_distribution(name):
    X = distributions.draw(name, 7, M, 3, np.random.default_rng(0))
    assert set(np.unique(X)) == {-1, 1}
    mean, neighbours = X.mean(axis=0), (X[:, 1:] * X[:, :-1]).mean(axis=0)
    if name == distributions.CENTRES:
        centres = np.random.default_rng([3, 5]).choice([-1, 1], size=(distributions.N_CENTRES, 7))
        expected = (1 - 2 * distributions.FLIP) * centres.mean(axis=0)
        expected_neighbours = (1 - 2 * distributions.FLIP) ** 2 * (centres[:, 1:] * centres[:, :-1]).mean(axis=0)
    else:
        expected = 2 * distributions.BIAS - 1 if name == distributions.BIASED else 0
        expected_neighbours = {
            distributions.UNIFORM: 0,
            distributions.BIASED: (2 * distributions.BIAS - 1) ** 2,
            distributions.CORRELATED: 2 * distributions.STAY - 1,
        }[name]
    np.testing.assert_allclose(mean, expected * np.ones(7), atol=6 / np.sqrt(M))
    np.testing.assert_allclose(neighbours, expected_neighbours * np.ones(6), atol=6 / np.sqrt(M))


def test_points_seen_are_left_out_and_a_learned_network_errs_on_no_other():
    """Without noise the search recovers a tiny network; of 2^6 points some of 500 are among the 20 seen."""
    task = {
        "n": 6,
        "s": 2,
        "m": 100,
        "fresh": 500,
        "distribution": distributions.UNIFORM,
        "seed": 3,
        "noise_variance": 0.0,
    }
    found = experiment.measure(**task)
    assert found == experiment.measure(**task)
    assert found["share"] < 1e-3
    assert 0 < found["new"] < 1
