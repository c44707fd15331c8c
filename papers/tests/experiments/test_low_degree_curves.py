"""Low-degree curves: exact errors by another route, the corruption, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, points, subset_masks, subsets_of
from sparsact_papers.common.learners import GATED, TARGETS, drawn, planted
from sparsact_papers.experiments import Row, Rows, Scale
from sparsact_papers.paper_a import low_degree_curves as curves


def task(**other: object) -> dict[str, object]:
    return {"target": GATED, "n": 6, "degree": 2, "ratio": 3.0, "labels": curves.CLEAN, "seed": 0} | other


def made(values: dict[str, float], **other: object) -> Row:
    return Row("0", "low-degree-curves", 1, task(**other), values, 0.0, "", {}, {}, "")


def test_the_error_matches_plain_least_squares() -> None:
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


def test_a_random_corruption_and_its_reverse_add_up_with_the_tail_as_noise_does() -> None:
    draws = [curves.measure(**task(labels=labels)) for labels in (curves.OBLIVIOUS, curves.REVERSED)]  # type: ignore[arg-type]
    spectrum = Spectrum.of(planted(GATED, 6, 0)(points(6)))
    moved = curves.corruption(spectrum, 2, curves.OBLIVIOUS, 0)
    columns = characters(points(6), subsets_of(subset_masks(6, 2)))
    fitted = moved - columns @ np.linalg.lstsq(columns, moved, rcond=None)[0]
    added = [found["least_risk"] - found["tail"] for found in draws]
    assert np.mean(added) == pytest.approx(np.mean(fitted**2))
    assert abs(added[0] - added[1]) > 0.01 * draws[0]["noise"]


def test_the_excess_is_the_largest_of_degrees_after_the_mean_of_draws() -> None:
    risks = {
        (1, curves.OBLIVIOUS): 2.2,
        (1, curves.REVERSED): 1.2,
        (2, curves.OBLIVIOUS): 1.0,
        (2, curves.REVERSED): 2.0,
    }
    rows = Rows(
        made({"least_risk": risk + seed / 10, "noise": 1.0, "tail": 1.0}, degree=degree, labels=labels, seed=seed)
        for seed in range(3)
        for (degree, labels), risk in risks.items()
    )
    aligned = Rows(
        [*rows, *(made({"least_risk": 3 + s, "noise": 1, "tail": 1}, labels=curves.ALIGNED, seed=s) for s in (0, 1))]
    )
    verdict = next(claim for claim in curves.CLAIMS if claim.name == "agnostic").verdict(aligned)
    assert "−0.2 [−0.448, 0.0484]" in verdict.measured  # of −0.3, −0.2 and −0.1, by Student's distribution


def test_scales_grow() -> None:
    counts = [len(curves.EXPERIMENT.tasks(scale)) for scale in Scale]
    assert counts == sorted(counts)
    assert len(set(counts)) == 3
