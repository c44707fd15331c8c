"""Pairs of units by hand, what is measured at the ends of the correlation, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum, average_sensitivity
from sparsact.hypercube import points
from sparsact_papers.experiments import Row
from sparsact_papers.paper_a import correlated_activations as experiment

TASK = {"kind": experiment.SAME, "rho": 0.0, "n": 5, "b": 1, "m": 60, "restarts": 0, "seed": 1}


def made(values: dict[str, float], **other: object) -> Row:
    return Row("0", "correlated-activations", 1, TASK | other, values, 0.0, "", {}, {}, "")


@pytest.mark.parametrize("kind", [experiment.SAME, experiment.OPPOSED, experiment.INDEPENDENT])
def test_two_units_at_most(kind: str) -> None:
    network = experiment.planted(kind, 0.5, 7, 2, 3)
    assert network.s == 8
    assert network.certify().upper == 2


def test_twins_at_full_correlation() -> None:
    cube = points(7)
    same, opposed = (experiment.planted(kind, 1.0, 7, 2, 3) for kind in (experiment.SAME, experiment.OPPOSED))
    active = same.active(cube)
    np.testing.assert_array_equal(active[:, :4], active[:, 4:])
    np.testing.assert_array_equal(opposed(cube), 0)
    single = experiment.planted(experiment.SAME, 1.0, 7, 2, 3)
    np.testing.assert_allclose(same(cube), 2 * (single.preactivations(cube)[:, :4].clip(0) @ single.u[:4]))


def test_correlation_is_that_of_the_weights() -> None:
    network = experiment.planted(experiment.SAME, 0.9, 4000, 1, 0)
    one, two = np.asarray(network.W)[0, 1:], np.asarray(network.W)[2, 1:]
    assert np.corrcoef(one, two)[0, 1] == pytest.approx(0.9, abs=0.02)


def test_measure() -> None:
    found = experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found == experiment.measure(**TASK)  # type: ignore[arg-type]
    values = experiment.planted(experiment.SAME, 0.0, 5, 1, 1)(points(5))
    assert found["sensitivity"] == pytest.approx(average_sensitivity(values))
    assert found["tail"] == pytest.approx(Spectrum.of(values).tail(3))
    assert found["sensitivity"] <= found["bound_by_activity"] <= found["bound"]
    assert found["error"] >= found["tail"]
    closer = experiment.measure(**(TASK | {"rho": 0.99}))  # type: ignore[arg-type]
    assert closer["together"] > found["together"]
