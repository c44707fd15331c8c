"""Parity: the zigzag by its definition, errors of low degree, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.experiments import Row
from sparsact_papers.paper_a import parity_defeats as experiment

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
