"""The Rademacher experiment: against brute force, and its judges on made-up rows."""

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a import rademacher_complexity as experiment
from sparsact.hypercube import points


def row(values, **parameters):
    """A row of a cube, or what ``parameters`` say."""
    parameters = {"sample": "cube", "n": 3, "k": 1, "B": 1.0, "n_draws": None, "seed": 0} | parameters
    return Row("", "rademacher", 1, parameters, values, 1.0, "", {}, {}, "")


def cube(last, n_draws=None, dense=2.0, bound=9.0, conjecture=5.0, B=1.0):
    """Values for one and two units."""
    values = {
        "units": [1, 2],
        "sparse": [1.0, last],
        "dense": [1.0, dense],
        "conjecture": [conjecture] * 2,
        "sparse_bound": [bound] * 2,
        "dense_bound": [bound] * 2,
        "pair": 2.0,
    }
    return row(values, n_draws=n_draws, B=B)


def test_one_unit_is_no_less_than_any_that_is_tried():
    values = experiment.measure(sample="cube", n=2, k=1, B=1.0, n_draws=None, seed=0)
    X = points(2)
    rng = np.random.default_rng(3)
    w = rng.normal(size=(20_000, 2))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    active = np.maximum(X @ w.T - rng.uniform(-1, 1, 20_000), 0)  # (points, units)
    tried = np.abs(points(4) @ active / 4).max(axis=1).mean()
    assert values["sparse"][0] * 0.97 < tried <= values["sparse"][0] + 1e-6
    together = experiment.measure(sample="cube", n=2, k=2, B=1.0, n_draws=None, seed=0)
    assert together["pair"] == pytest.approx(2 * values["sparse"][0], rel=1e-6)


def test_measure_is_deterministic_and_the_seed_matters():
    drawn = [experiment.measure(sample="cube", n=2, k=1, B=1.0, n_draws=5, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_orthogonal_points_reach_what_the_docstring_says():
    values = experiment.measure(sample="orthogonal", n=8, k=1, B=1.0, n_draws=5, seed=0)
    assert values["reached"] == pytest.approx(2.0)  # 2 W R / sqrt(m)
    assert values["allowed"] == pytest.approx((np.sqrt(8) + 1) / 2)  # B = W R / sqrt(m) = 1
    assert values["most_active"] == 1


@pytest.mark.parametrize(("last", "outcome"), [(1.5, Outcome.HOLDS), (1.9, Outcome.DOES_NOT_HOLD)])
def test_growth(last, outcome):
    rows = Rows([cube(last), cube(last, 10), cube(last, 10)])
    assert experiment.judge_growth(rows).outcome is outcome


def test_the_jackknife_is_wide_where_blocks_disagree():
    rows = Rows([cube(1.5), cube(1.0, 10), cube(2.0, 10)])
    assert experiment.judge_growth(rows).outcome is Outcome.UNDECIDED
    assert experiment.growth_of(rows[1:]).estimate == pytest.approx(1.5)


def test_growth_that_depends_on_the_bias_names_it():
    small, large = ([cube(last, n_draws, B=B) for n_draws in (None, 10, 10)] for last, B in ((1.9, 0.5), (1.5, 2.0)))
    verdict = experiment.judge_growth(Rows([*small, *large]))
    assert verdict.outcome is Outcome.HOLDS_ONLY_IF
    assert verdict.condition == "B is 2, of 0.5, 2 tried with W = 1"


def test_dense_and_bound():
    assert experiment.judge_dense(Rows([cube(1.5)])).outcome is Outcome.HOLDS
    assert experiment.judge_dense(Rows([cube(1.5, dense=2.1)])).outcome is Outcome.DOES_NOT_HOLD
    assert experiment.judge_bound(Rows([cube(1.5)])).outcome is Outcome.HOLDS
    assert experiment.judge_bound(Rows([cube(1.5, bound=0.9)])).outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("conjecture", "reached", "outcome"),
    [
        (5.0, 0.9, Outcome.HOLDS),
        (5.0, 1.1, Outcome.HOLDS_ONLY_IF),
        (0.9, 1.1, Outcome.DOES_NOT_HOLD),
    ],
)
def test_conjecture(conjecture, reached, outcome):
    orthogonal = row({"reached": reached, "allowed": 1.0}, sample="orthogonal", n=8, n_draws=10)
    assert experiment.judge_conjecture(Rows([cube(1.5, conjecture=conjecture), orthogonal])).outcome is outcome


def test_claims_without_rows_are_undecided():
    assert {c.verdict(Rows([])).outcome for c in experiment.EXPERIMENT.claims} == {Outcome.UNDECIDED}
