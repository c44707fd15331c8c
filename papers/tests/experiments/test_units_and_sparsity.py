import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact_papers.common.networks import network_of
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.paper_a.units_and_sparsity import (
    EXPERIMENT,
    measure,
    power,
)

SIZES = (2, 4, 8)


def row(varied, size, seed, sensitivity, error, tail=None):
    parameters = {"n": 8, "s": 16, "k": 2, "varied": varied, "seed": seed} | {varied: size}
    values = {
        "sensitivity": sensitivity,
        "error_share": error,
        "tail_share": tail or error,
        "fit_factor": 1.0,
    }
    return Row(str(parameters), EXPERIMENT.name, 1, parameters, values, 0, "", {}, {}, "")


def sweep(varied, sensitivity_power, error_power):
    return Rows(
        row(varied, size, seed, (1 + seed) * size**sensitivity_power, size**error_power)
        for size in SIZES
        for seed in range(3)
    )


def test_the_tail_is_what_the_best_quadratic_leaves_and_the_learner_is_no_better():
    task = {"n": 6, "s": 9, "k": 2, "seed": 3}
    found = measure(varied="s", **task)
    assert found == measure(varied="s", **task)
    X = points(6).astype(float)
    f = network_of("sparse", **task)(X)
    pairs = [X[:, i] * X[:, j] for i in range(6) for j in range(i)]
    design = np.column_stack([np.ones(len(X)), X, *pairs])
    residual = f - design @ np.linalg.lstsq(design, f)[0]
    np.testing.assert_allclose(found["tail_share"], residual.var() / f.var(), rtol=1e-9)
    assert found["error_share"] >= found["tail_share"]


def test_the_power_is_that_of_the_curve():
    assert power(sweep("k", 1.5, 0.2), "k", "sensitivity").estimate == pytest.approx(1.5)
