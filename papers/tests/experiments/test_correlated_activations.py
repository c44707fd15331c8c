"""Pairs of units by hand, what is measured at the ends of the correlation, and sensitivity by another route."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import average_sensitivity
from sparsact.hypercube import points
from sparsact_papers.paper_a import correlated_activations as experiment

TASK = {"kind": experiment.SAME, "rho": 0.0, "n": 9, "m": 100, "fresh": 700, "seed": 1}


@pytest.mark.parametrize("kind", [experiment.SAME, experiment.OPPOSED])
def test_two_units_at_most(kind: str) -> None:
    network = experiment.planted(kind, 0.5, 7, 3)
    assert network.s == 4
    assert network.certify().upper == 2


def test_twins_at_full_correlation() -> None:
    cube = points(7)
    same, opposed = (experiment.planted(kind, 1.0, 7, 3) for kind in (experiment.SAME, experiment.OPPOSED))
    active = same.active(cube)
    np.testing.assert_array_equal(active[:, ::2], active[:, 1::2])
    np.testing.assert_allclose(opposed(cube), 0, atol=1e-12)
    np.testing.assert_allclose(same(cube), 2 * (same.preactivations(cube)[:, ::2].clip(0) @ same.u[::2]))


def test_correlation_matches_the_normals() -> None:
    W = np.asarray(experiment.planted(experiment.SAME, 0.9, 4000, 0).W)
    assert W[0] @ W[1] == pytest.approx(0.9, abs=0.02)
    np.testing.assert_array_equal(W[:2], -W[2:])


def test_sensitivity_over_the_whole_cube() -> None:
    network = experiment.planted(experiment.OPPOSED, 0.3, 6, 2)
    expected = average_sensitivity(network(points(6)))
    assert experiment.sensitivity(network, points(6)) == pytest.approx(expected)


def test_measure() -> None:
    found = experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found == experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found["sensitivity"] <= found["bound_by_activity"] <= found["bound"]
    closer = experiment.measure(**(TASK | {"rho": 0.99}))  # type: ignore[arg-type]
    assert closer["together"] > found["together"]
