import os

import numpy as np
import pytest
from reproduced import made_up

from sparsact.datasets import config_performance
from sparsact_papers.experiments import Rows
from sparsact_papers.paper_a import real_tables
from sparsact_papers.paper_a.real_tables import DENSE, EXPERIMENT, LOW_DEGREE, MODELS, SPARSE

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)
FIRING = {
    f"{name}_{where}": value
    for where in ("train", "test", "uniform")
    for name, value in {"most": 2, "mean": 1.5, "above_k": 0.0, "dispersion": 0.5}.items()
}


def row(table, model, mse, seed=0, share=1.0, **values):
    parameters = {"table": table, "model": model, "share": share, "seed": seed}
    values = {"mse": mse, "n_train": round(100 * share), "n": 8} | values
    if model in SPARSE:
        values = FIRING | {"n_units": 5} | values
    return made_up(real_tables.EXPERIMENT, parameters, values)


def test_firing_counts_units_and_compares_their_number_with_independent_ones():
    exclusive = np.eye(4, dtype=bool)
    together = np.repeat([[True], [False]], 3, axis=1)
    assert real_tables.firing(exclusive, 1) == {"most": 1, "mean": 1.0, "above_k": 0.0, "dispersion": 0.0}
    assert real_tables.firing(together, 2) == {"most": 3, "mean": 1.5, "above_k": 0.5, "dispersion": 3.0}
    assert real_tables.firing(np.ones((5, 2), dtype=bool), 2)["dispersion"] is None
    independent = np.random.default_rng(0).random((40_000, 6)) < 0.3
    # The variance of 40,000 draws has a relative standard error of 0.7 %: five of these.
    assert real_tables.firing(independent, 6)["dispersion"] == pytest.approx(1, abs=0.035)


@needs_data
def test_the_error_of_degree_one_matches_ridge_on_the_signs_on_the_same_rows():
    from sparsact import LowDegreeRegressorCV

    data = config_performance("Apache")
    signs = 1.0 - 2.0 * data.X
    train, test = real_tables.split(len(data.y), 1.0, 2)
    assert sorted([*train, *test]) == list(range(len(data.y)))
    assert len(test) == round(len(data.y) / 5)
    alpha = LowDegreeRegressorCV(degrees=(1,), random_state=2).fit(signs[train], data.y[train]).alpha_
    centred = signs[train] - signs[train].mean(axis=0)
    gram = centred.T @ centred + alpha * np.eye(8)
    coefficients = np.linalg.solve(gram, centred.T @ (data.y[train] - data.y[train].mean()))
    values = (signs[test] - signs[train].mean(axis=0)) @ coefficients + data.y[train].mean()
    expected = np.mean((values - data.y[test]) ** 2) / data.y[test].var()
    measured = real_tables.measure(table="Apache", model="degree 1", share=1.0, seed=2)
    assert measured["mse"] == pytest.approx(expected, rel=1e-6)
    assert measured["n_train"] == len(train)


@needs_data
def test_sparse_networks_keep_their_bound_on_the_rows_fitted_and_measure_alike_twice():
    task = {"table": "BDBJ", "model": "sparse, k = 1", "share": 0.25, "seed": 1}
    measured = real_tables.measure(**task)
    assert measured["most_train"] <= 1
    assert measured["above_k_train"] == 0.0
    assert measured == real_tables.measure(**task)


def test_splits_that_one_model_lacks_do_not_count():
    pairs = [
        row("t", name, mse * 10**seed, seed) for seed in (0, 1) for name, mse in ((LOW_DEGREE, 0.01), (DENSE, 0.02))
    ]
    rows = Rows([*pairs, row("t", DENSE, 1e-4, seed=4)])
    assert real_tables.log_ratios(rows, LOW_DEGREE, DENSE, 1.0) == pytest.approx([-1, -1])


def test_charts_draw_the_numbers_of_their_frames():
    rows = Rows(
        row(table, model, 0.1 * share, seed, share)
        for table in ("Apache", "LLVM", "x264", "BDBJ")
        for model in MODELS
        for seed in range(3)
        for share in (0.25, 1.0)
    )
    found, firing = (chart.frame(rows) for chart in EXPERIMENT.charts)
    assert found["error"][:2] == [0.025, 0.1]
    assert firing["most"] == [2.0] * len(firing["most"])
    assert len(firing["most"]) == 4 * len(SPARSE) * 3
    for chart, frame in zip(EXPERIMENT.charts, (found, firing), strict=True):
        assert len({len(column) for column in frame.values()}) == 1
        assert chart.plot(frame).axes
        assert not any(chart.frame(Rows([])).values())
