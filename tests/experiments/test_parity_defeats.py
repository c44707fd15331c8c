"""Parity: the zigzag by its definition, errors of low degree, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a import parity_defeats as experiment
from sparsact.fourier import Spectrum
from sparsact.hypercube import points

TASK = {"kind": experiment.DENSE, "size": 3, "n": 5, "degree": 2, "seed": 1}


def made(values: dict[str, object], **other: object) -> Row:
    return Row("0", "parity-defeats", 1, TASK | other, values, 0.0, "", {}, {}, "")


@pytest.mark.parametrize("subset", [(0,), (1, 4), (0, 2, 3), (0, 1, 2, 3, 4)])
def test_zigzag_is_a_character(subset: tuple[int, ...]) -> None:
    network = experiment.zigzag(np.array(subset), 5)
    assert network.s == len(subset) + 1
    assert Spectrum.of(network(points(5))).to_sparse(1e-9).subsets == [subset]


@pytest.mark.parametrize("kind", experiment.KINDS)
def test_all_have_the_same_units_and_scale_or_fewer(kind: str) -> None:
    dense, other = experiment.built(experiment.DENSE, 5, 7, 2), experiment.built(kind, 5, 7, 2)
    assert other.s <= dense.s
    assert pytest.approx(dense.scale().W) == other.scale().W
    assert kind == experiment.DENSE or other.certify().upper == 1


def test_degree_decides() -> None:
    low = experiment.measure(**TASK)  # type: ignore[arg-type]
    high = experiment.measure(**(TASK | {"degree": 3}))  # type: ignore[arg-type]
    assert low["error"] >= low["variance"] == pytest.approx(1.0)
    assert high["error"] < 1e-15
    assert low == experiment.measure(**TASK)  # type: ignore[arg-type]
    lifted = experiment.measure(**(TASK | {"kind": experiment.LIFTED, "degree": 1}))  # type: ignore[arg-type]
    assert lifted["active"] == 1
    assert lifted["n_units"] == 2
    assert lifted["wrong"] == 0
    assert lifted["error"] >= lifted["variance"]


def test_judges() -> None:
    low = {"error": 1.2, "variance": 1.0, "wrong": 0.0, "active": 4, "n_units": 4}
    high = low | {"error": 0.0}
    dense = [made(low), made(high, degree=3)]
    assert experiment.judge_defeats(Rows(dense)).outcome is Outcome.HOLDS
    assert experiment.judge_defeats(Rows([made(low | {"error": 0.3}), dense[1]])).outcome is Outcome.DOES_NOT_HOLD
    assert experiment.judge_activity(Rows(dense)).outcome is Outcome.HOLDS
    assert experiment.judge_activity(Rows([made(low | {"active": 1})])).outcome is Outcome.DOES_NOT_HOLD
    sparse = [made(low | {"error": e}, kind=experiment.RANDOM) for e in (0.2, 0.21, 0.19)]
    assert experiment.judge_sparse(Rows(sparse)).outcome is Outcome.HOLDS
    parities = [made(low, kind=experiment.JUNTA, degree=1), made(high, kind=experiment.JUNTA, degree=2)]
    assert experiment.judge_logarithm(Rows(parities)).outcome is Outcome.HOLDS
    lifted = low | {"active": 1, "n_units": 2}
    assert experiment.judge_lifted(Rows([made(lifted, kind=experiment.LIFTED)])).outcome is Outcome.HOLDS
    dense_lift = made(lifted | {"active": 2}, kind=experiment.LIFTED)
    assert experiment.judge_lifted(Rows([dense_lift])).outcome is Outcome.DOES_NOT_HOLD
