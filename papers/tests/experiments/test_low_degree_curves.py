"""Low-degree curves: exact errors by another route, the corruption, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, points, subset_masks, subsets_of
from sparsact_papers.common.learners import GATED, TARGETS, drawn, planted
from sparsact_papers.experiments import Row, Scale
from sparsact_papers.paper_a import low_degree_curves as curves


def task(**other: object) -> dict[str, object]:
    return {"target": GATED, "n": 6, "degree": 2, "ratio": 3.0, "labels": curves.CLEAN, "seed": 0} | other


def made(values: dict[str, float], **other: object) -> Row:
    return Row("0", "low-degree-curves", 1, task(**other), values, 0.0, "", {}, {}, "")


def test_the_error_is_that_of_plain_least_squares() -> None:
    found = curves.measure(**task(labels=curves.ALIGNED))  # type: ignore[arg-type]
    cube, f = points(6), planted(GATED, 6, 0)(points(6))
    moved = curves.corruption(Spectrum.of(f), 2, curves.ALIGNED, 0)
    columns = characters(cube, subsets_of(subset_masks(6, 2)))
    seen = drawn(6, int(found["m"]), 0)
    fitted = columns @ np.linalg.lstsq(columns[seen], (f + moved)[seen], rcond=None)[0]
    assert found["n_monomials"] == columns.shape[1] == 22
    assert found["error"] == pytest.approx(np.mean((fitted - f) ** 2))
    assert found["risk"] == pytest.approx(np.mean((fitted - f - moved) ** 2))
    best = columns @ np.linalg.lstsq(columns, f + moved, rcond=None)[0]
    assert found["least_risk"] == pytest.approx(np.mean((best - f - moved) ** 2))
    assert found["least_risk"] <= found["risk"]


def test_the_error_is_tail_plus_error_of_coefficients() -> None:
    found = curves.measure(**task(labels=curves.GAUSSIAN))  # type: ignore[arg-type]
    assert found["error"] > found["tail"] > 0
    assert found == curves.measure(**task(labels=curves.GAUSSIAN))  # type: ignore[arg-type]
    assert found["predicted"] > curves.measure(**task())["predicted"]  # type: ignore[arg-type]


@pytest.mark.parametrize("labels", [curves.OBLIVIOUS, curves.ALIGNED])
def test_a_tenth_of_the_labels_moves(labels: str) -> None:
    spectrum = Spectrum.of(planted(TARGETS[1], 7, 3)(points(7)))
    moved = curves.corruption(spectrum, 3, labels, 3)
    assert np.count_nonzero(moved) == round(0.1 * 2**7)
    assert set(np.abs(moved[moved != 0])) == {np.sqrt(spectrum.variance())}
    high = (spectrum - spectrum.truncate(3)).values()
    assert (np.mean(moved * high) > np.mean(np.abs(moved) * np.mean(np.abs(high)))) == (labels == curves.ALIGNED)


def test_scales_grow() -> None:
    counts = [len(curves.EXPERIMENT.tasks(scale)) for scale in Scale]
    assert counts == sorted(counts)
    assert len(set(counts)) == 3
