import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a.spectral_networks import network_of
from sparsact.experiments.paper_a.units_and_sparsity import (
    EXPERIMENT,
    judge_error,
    judge_sensitivity,
    judge_tail,
    judge_units,
    measure,
    power,
)
from sparsact.hypercube import points

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


@pytest.mark.parametrize(
    ("powers", "outcome"),
    [((0.05, -0.05), Outcome.HOLDS), ((0.05, 0.5), Outcome.DOES_NOT_HOLD), ((-1, 0.0), Outcome.DOES_NOT_HOLD)],
)
def test_units(powers, outcome):
    assert judge_units(sweep("s", *powers)).outcome is outcome


@pytest.mark.parametrize(("exponent", "outcome"), [(1, Outcome.HOLDS), (2.5, Outcome.DOES_NOT_HOLD)])
def test_sparsity_and_sensitivity(exponent, outcome):
    assert judge_sensitivity(sweep("k", exponent, 0)).outcome is outcome


@pytest.mark.parametrize(("exponent", "outcome"), [(0.3, Outcome.HOLDS), (-0.3, Outcome.DOES_NOT_HOLD)])
def test_sparsity_and_error(exponent, outcome):
    assert judge_error(sweep("k", 1, exponent)).outcome is outcome


@pytest.mark.parametrize(("error", "outcome"), [(0.11, Outcome.HOLDS), (0.2, Outcome.DOES_NOT_HOLD)])
def test_error_and_tail(error, outcome):
    assert judge_tail(Rows([row("s", 4, 0, 1.0, error, tail=0.1)])).outcome is outcome


def test_a_power_wants_two_sizes():
    assert EXPERIMENT.claims[0].verdict(Rows([row("s", 4, seed, 1, 1) for seed in range(2)])).outcome is (
        Outcome.UNDECIDED
    )
