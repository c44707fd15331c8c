"""Low-degree curves: exact errors by another route, the corruption, and the judges on made-up rows."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows, Scale
from sparsact.experiments.paper_a import low_degree_curves as curves
from sparsact.experiments.paper_a.learning_targets import GATED, TARGETS, drawn, planted
from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, points, subset_masks, subsets_of


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


def test_the_formula_holds_only_in_a_large_cube() -> None:
    small = [
        made({"error": e, "predicted": 1.0, "m": 10}, n=16, degree=3, seed=i) for i, e in enumerate((1.0, 1.02, 1.01))
    ]
    large = [
        made({"error": e, "predicted": 1.0, "m": 900}, n=10, degree=3, seed=i) for i, e in enumerate((1.5, 1.6, 1.7))
    ]
    verdict = curves.judge_formula(Rows(small + large))
    assert verdict.outcome is Outcome.HOLDS_ONLY_IF
    assert "eighth" in verdict.condition
    assert curves.judge_formula(Rows(small + [made({"error": 1.0, "predicted": 1.0, "m": 900}, degree=3, seed=s) for s in (0, 1)])).outcome is Outcome.HOLDS  # fmt: skip  # noqa: E501
    wrong = [made({"error": 2.0, "predicted": 1.0, "m": 1}, n=16, degree=4, seed=s) for s in (0, 1)]
    assert curves.judge_formula(Rows(small + large + wrong)).outcome is Outcome.DOES_NOT_HOLD


def test_judges_of_noise_corruption_and_constant() -> None:
    noisy = [made({"error": 1.01, "predicted": 1.0}, labels=curves.GAUSSIAN, seed=s) for s in (0, 1, 2)]
    assert curves.judge_noise(Rows(noisy)).outcome is Outcome.HOLDS
    worse = [made({"error": 3.0, "predicted": 1.0}, labels=curves.GAUSSIAN, seed=s) for s in (0, 1, 2)]
    assert curves.judge_noise(Rows(worse)).outcome is Outcome.DOES_NOT_HOLD
    random = made({"least_risk": 1.5, "noise": 1.0, "tail": 0.5}, labels=curves.OBLIVIOUS)
    aligned = made({"least_risk": 2.6, "noise": 1.0, "tail": 0.5}, labels=curves.ALIGNED)
    assert curves.judge_agnostic(Rows([random, aligned])).outcome is Outcome.HOLDS_ONLY_IF
    assert curves.judge_triangle(Rows([random, aligned])).outcome is Outcome.HOLDS
    beyond = made({"least_risk": 3.0, "noise": 1.0, "tail": 0.5}, labels=curves.ALIGNED)
    assert curves.judge_triangle(Rows([beyond])).outcome is Outcome.DOES_NOT_HOLD
    clean = [made({"error": e, "tail": 1.0}, ratio=4.0) for e in (1.3, 1.4)]
    assert curves.judge_constant(Rows(clean)).outcome is Outcome.HOLDS


def test_scales_grow() -> None:
    counts = [len(curves.EXPERIMENT.tasks(scale)) for scale in Scale]
    assert counts == sorted(counts)
    assert len(set(counts)) == 3
