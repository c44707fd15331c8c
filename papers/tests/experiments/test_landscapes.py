import os
from itertools import pairwise

import numpy as np
import pytest
from reproduced import made_up

from sparsact.hypercube import bits_to_signs, characters, n_subsets, subset_masks, subsets_of
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.paper_a import landscapes
from sparsact_papers.paper_a.landscapes import EXPERIMENT

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)


def llvm(ratio, ratio_finite, weights=(0, 0.5, 0.3, 0.15, 0.05)):
    """Rows of LLVM: at degree 1 as predicted, at degree 4 (38 % of the table) off by the ratios."""
    return Rows(
        made_up(
            landscapes.EXPERIMENT,
            {"table": "LLVM", "degree": degree, "n_train": 800, "seed": seed},
            {
                "mse": 1 + 0.001 * seed,
                "predicted": 1.0 if degree == 1 else 1 / ratio,
                "predicted_finite": 1.0 if degree == 1 else 1 / ratio_finite,
                "n_coefficients": {1: 11, 4: 386}[degree],
                "share_of_table": {1: 11, 4: 386}[degree] / 1024,
                "weights": list(weights),
                "average_sensitivity": float(np.arange(len(weights)) @ np.asarray(weights)),
            },
        )
        for degree in (1, 4)
        for seed in range(4)
    )


@needs_data
def test_the_weights_are_the_squared_averages_of_the_characters_by_the_table_itself():
    X, y = landscapes.complete_table("LLVM")
    chi = characters(bits_to_signs(X), subsets_of(subset_masks(10, 2)))
    means = (chi * y[:, None]).mean(axis=0)
    measured = landscapes.measure(table="LLVM", degree=2, n_train=512, seed=0)
    assert measured["weights"][1] == pytest.approx((means[1:11] ** 2).sum())
    assert measured["tail"] == pytest.approx(1 - (means**2).sum())
    assert sum(measured["weights"]) == pytest.approx(1)


@needs_data
def test_the_error_matches_least_squares_on_the_characters():
    X, y = landscapes.complete_table("LLVM")
    chi = characters(bits_to_signs(X), subsets_of(subset_masks(10, 2)))
    order = np.random.default_rng([3, 1]).permutation(1024)
    coefficients = np.linalg.lstsq(chi[order[:300]], y[order[:300]])[0]
    expected = np.mean((chi[order[300:]] @ coefficients - y[order[300:]]) ** 2)
    assert landscapes.measure(table="LLVM", degree=2, n_train=300, seed=3)["mse"] == pytest.approx(expected)


def test_both_predictions_together_give_the_leave_one_out_error_of_a_complete_table():
    rng = np.random.default_rng(0)
    n, degree = 7, 3
    chi = characters(bits_to_signs(np.arange(2**n)[:, None] >> np.arange(n) & 1), subsets_of(subset_masks(n, degree)))
    y = rng.normal(size=2**n)
    residual = y - chi @ (chi.T @ y) / 2**n
    errors = []
    for left_out in range(2**n):
        kept = np.arange(2**n) != left_out
        coefficients = np.linalg.lstsq(chi[kept], y[kept])[0]
        errors.append((chi[left_out] @ coefficients - y[left_out]) ** 2)
    predicted, price = landscapes.predictions(float(np.mean(residual**2)), n, degree, 2**n)
    assert np.mean(errors) == pytest.approx(predicted * price, rel=1e-9)


def test_sizes_hold_more_rows_than_coefficients_and_every_claim_has_tasks():
    for scale, smaller in pairwise((Scale.FULL, Scale.QUICK)):
        assert len(landscapes.EXPERIMENT.tasks(scale)) > len(landscapes.EXPERIMENT.tasks(smaller))
    for task in landscapes.EXPERIMENT.tasks(Scale.FULL):
        table, degree = task.parameters["table"], task.parameters["degree"]
        assert task.parameters["n_train"] > n_subsets(landscapes.BITS[table], degree)


def test_charts_draw_the_numbers_of_their_frames():
    weights, errors, ratios = (chart.frame(llvm(1.3, 1.0)) for chart in EXPERIMENT.charts)
    assert weights["share"] == [0.5, 0.3, 0.15, 0.05]
    assert errors["series"] == ["degree 1", "degree 4"]
    assert ratios["ratio"][1] == pytest.approx(1.3 * 1.0015)
    for chart, frame in zip(EXPERIMENT.charts, (weights, errors, ratios), strict=True):
        assert len({len(column) for column in frame.values()}) == 1
        assert chart.plot(frame).axes
        assert not any(chart.frame(Rows([])).values())


def test_absent_data_are_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path))
    assert "set SPARSACT_DATA" in landscapes.EXPERIMENT.unmet()
    for file in landscapes.FILES.values():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    assert landscapes.EXPERIMENT.unmet() is None
