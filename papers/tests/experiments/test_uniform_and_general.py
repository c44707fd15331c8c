"""Distributions, the least error of a polynomial by another route, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.paper_a import uniform_and_general as experiment

TASK = {"distribution": experiment.UNIFORM, "learner": experiment.ERM, "n": 6, "s": 2, "m": 150, "seed": 3}


def made(error: float, **other: object) -> Row:
    values = {"error": error, "variance": 1.0, "least": 0.1}
    return Row("0", "uniform-and-general", 1, TASK | other, values, 0.0, "", {}, {}, "")


@pytest.mark.parametrize("name", experiment.DISTRIBUTIONS)
def test_probabilities(name: str) -> None:
    chances = experiment.probabilities(name, 6, 0)
    assert chances.sum() == pytest.approx(1.0)
    means = chances @ points(6)
    neighbours = chances @ (points(6)[:, 1:] * points(6)[:, :-1])
    if name == experiment.BIASED:
        np.testing.assert_allclose(means, 0.6)
    elif name == experiment.CORRELATED:
        np.testing.assert_allclose(means, 0, atol=1e-12)
        np.testing.assert_allclose(neighbours, 0.6)
    elif name == experiment.SUBSET:
        assert np.count_nonzero(chances) == 8


def test_least_error_is_the_tail_if_uniform() -> None:
    values = np.random.default_rng(0).normal(size=64)
    uniform = experiment.probabilities(experiment.UNIFORM, 6, 0)
    assert experiment.least_error(values, uniform, 2) == pytest.approx(Spectrum.of(values).tail(2))


@pytest.mark.parametrize("learner", experiment.DEGREES)
def test_no_polynomial_errs_less_than_the_least(learner: str) -> None:
    task = TASK | {"learner": learner, "distribution": experiment.BIASED}
    found = experiment.measure(**task)  # type: ignore[arg-type]
    assert found["error"] >= found["least"] > 0
    assert found == experiment.measure(**task)  # type: ignore[arg-type]


def test_erm_recovers_a_tiny_network() -> None:
    found = experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found["error"] < 1e-3 * found["variance"]


def test_samples_needed() -> None:
    curve = [made(e, m=m) for e, m in ((0.01, 10), (0.5, 20), (0.05, 40), (0.01, 80))]
    assert experiment.samples_needed(Rows(curve)) == [40.0]
    assert experiment.samples_needed(Rows([made(0.5, m=80)])) == [160.0]
