"""The least error of a polynomial by another route, and the learners on a tiny network."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.common import distributions
from sparsact_papers.common.learners import SPARSE
from sparsact_papers.paper_a import uniform_and_general as experiment

TASK = {"distribution": distributions.BIASED, "n": 6, "k": 1, "m": 150, "fresh": 3000, "seed": 3}


def test_points_that_were_seen_are_left_out() -> None:
    X = points(5)[[3, 17, 17]]
    left = distributions.unseen(points(5), X)
    np.testing.assert_array_equal(left, np.delete(points(5), [3, 17], axis=0))


def test_least_error_over_the_whole_cube_is_the_tail() -> None:
    values = np.random.default_rng(0).normal(size=64)
    assert experiment.least_error(points(6), values, 2) == pytest.approx(Spectrum.of(values).tail(2))


@pytest.mark.parametrize("learner", experiment.POLYNOMIALS)
def test_no_polynomial_errs_less_than_the_least(learner: str) -> None:
    found = experiment.measure(learner=learner, **TASK)  # type: ignore[arg-type]
    assert found["error"] >= found["least"] > 0
    assert found == experiment.measure(learner=learner, **TASK)  # type: ignore[arg-type]


def test_erm_recovers_a_tiny_network_without_noise() -> None:
    found = experiment.measure(learner=SPARSE, deviation=0.0, **TASK)  # type: ignore[arg-type]
    assert found["error"] < 1e-6 * found["variance"] < found["least"]
