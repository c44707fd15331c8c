"""Juntas and Index_b: the function by its definition, recovery, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact_papers.experiments import Row
from sparsact_papers.paper_a import juntas_and_index as experiment

JUNTA = {"kind": "junta", "size": 3, "n": 7, "share": 1.0, "learner": experiment.AVERAGES, "seed": 1}
INDEX = JUNTA | {"kind": "index", "size": 2, "n": 6}


def made(values: dict[str, object], **other: object) -> Row:
    return Row("0", "juntas-and-index", 1, JUNTA | other, values, 0.0, "", {}, {}, "")


@pytest.mark.parametrize(("kind", "size", "n"), [("junta", 3, 7), ("index", 2, 6)])
def test_coefficients_are_multiples_of_the_step(kind: str, size: int, n: int) -> None:
    network, values, degree, step = experiment.built(kind, size, n, 5)
    coefficients = Spectrum.of(values).coefficients / step
    np.testing.assert_allclose(coefficients, np.round(coefficients), atol=1e-12)
    assert Spectrum.of(values).degree(1e-12) <= degree
    np.testing.assert_array_equal(network(points(n)), values)


def test_index_by_hand() -> None:
    _, values, _, _ = experiment.built("index", 1, 3, 0)
    assert values.tolist() == [1.0 if (x[1] if x[0] > 0 else x[2]) > 0 else 0.0 for x in points(3)]


def test_recovery_and_what_is_measured() -> None:
    found = experiment.measure(**JUNTA)  # type: ignore[arg-type]
    assert found["exact"]
    assert found["support"]
    assert found == experiment.measure(**JUNTA)  # type: ignore[arg-type]
    few = experiment.measure(**(JUNTA | {"share": 0.01, "learner": experiment.LEAST_SQUARES}))  # type: ignore[arg-type]
    assert few["m"] < few["n_monomials"]
    assert not few["exact"]
    index = experiment.measure(**INDEX)  # type: ignore[arg-type]
    assert index["none_active"] == 0.5
    assert index["certified"] == 1
