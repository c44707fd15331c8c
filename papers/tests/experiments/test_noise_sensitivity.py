from itertools import product

import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact_papers.paper_a.noise_sensitivity import (
    mean_square_change,
    measure,
)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, -0.5])
def test_the_definition_is_the_mean_over_all_pairs_of_points(rho):
    X, f = points(4), np.random.default_rng(0).normal(size=16)
    flip = (1 - rho) / 2
    by_pairs = 0.0
    for (x, fx), (y, fy) in product(zip(X, f, strict=True), repeat=2):
        distance = np.count_nonzero(x != y)
        by_pairs += flip**distance * (1 - flip) ** (4 - distance) * (fx - fy) ** 2 / 16
    assert mean_square_change(f, rho) == pytest.approx(by_pairs)


def test_measured_sensitivity_is_a_quarter_of_the_mean_square_change():
    task = {"model": "sparse", "n": 6, "s": 9, "k": 2, "seed": 4}
    found = measure(**task)
    assert found == measure(**task)
    np.testing.assert_allclose(np.array(found["mean_square_change"]) / 4, found["sensitivity"], rtol=1e-9)
    assert np.all(np.array(found["sensitivity"]) <= found["sharper"])
    assert 0 < found["tail_over_claim"] <= 1


def test_copies_lie_on_the_sharper_bound():
    found = measure(model="copies", n=5, s=6, k=3, seed=0)
    np.testing.assert_allclose(found["sensitivity"], found["sharper"])
