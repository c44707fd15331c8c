"""Theorem C.1: buckets against a count by hand."""

import numpy as np
import pytest

from sparsact import LSHRegressor
from sparsact_papers.experiments import Scale
from sparsact_papers.paper_b import theorem_c_1 as claims
from sparsact_papers.paper_b import theorem_c_1 as experiment

TASK = {"manifold": "swiss roll", "k": 2, "ambient": 5, "centres": 3, "rows": 900, "n_test": 400, "seed": 3}


@pytest.fixture(scope="module")
def values():
    return experiment.measure(**TASK)


def test_measure_is_deterministic_and_consistent(values):
    assert values == experiment.measure(**TASK)
    assert values["n_tables"] == 4  # 2 ln 5 = 3.2
    assert all(a > b for a, b in zip(values["widths"], values["widths"][1:], strict=False))
    assert all(a < b <= 900 for a, b in zip(values["buckets"], values["buckets"][1:], strict=False))
    for i in range(len(values["widths"])):
        assert values["mean_errors"][i] <= values["rmse"][i] <= values["sup_errors"][i]
        assert values["missed_by_all"][i] <= values["misses"][i] <= values["pruned_points"][i]
        assert values["pruned_by_all"][i] <= values["pruned_points"][i]
        assert values["printed_sizes"][i] == pytest.approx(10 / values["sup_errors"][i] ** 2)
        assert values["proof_sizes"][i] == pytest.approx(25**2 * 2 / values["sup_errors"][i] ** 2)
    assert values["linear_rmse"] < values["deviation"]


def test_buckets_are_those_of_directions_in_all_columns():
    rng = np.random.default_rng(0)
    frame = rng.normal(size=(2, 5))
    X, new = rng.uniform(-1, 1, (300, 2)) @ frame, rng.uniform(-1, 1, (80, 2)) @ frame
    found = experiment._at_width(1.5, 1, X, X[:, 0], new, new[:, 0], 7)
    hashes = LSHRegressor(1, 5, 1.5, 0, "euclidean", random_state=7, directions="principal").fit(X, X[:, 0])
    layout = hashes.table_.layout.hashes
    assert layout.directions.shape == (5, 5)
    codes, others = (np.floor((Z - layout.centre) @ layout.directions + layout.offsets) for Z in (X, new))
    cells, counts = np.unique(codes, axis=0, return_counts=True)
    assert found["buckets"] == len(cells)
    assert len(cells) > 20
    assert found["pruned_buckets"] == pytest.approx(np.mean(counts < claims.FEW))
    held = {tuple(cell): count for cell, count in zip(cells, counts, strict=True)}
    behind = np.array([held.get(tuple(code), 0) for code in others])
    assert found["misses"] == pytest.approx(np.mean(behind == 0))
    assert found["pruned_points"] == found["pruned_by_all"] == pytest.approx(np.mean(behind < claims.FEW))


def test_widths_leave_the_same_rows_a_bucket():
    full, less = (experiment.widths("sphere", 8, rows) for rows in (1 << 19, 1 << 17))
    assert less[-1] == pytest.approx(2 * full[-1])
    assert less[0] == full[0]
    assert experiment.widths("sphere", 16, 1 << 19) == pytest.approx([2 * w for w in full])


def test_scales():
    tasks = experiment.EXPERIMENT.tasks(Scale.FULL)
    assert {(t.parameters["manifold"], t.parameters["ambient"]) for t in tasks} == {
        (manifold, d) for manifold in claims.DIMENSIONS for d in claims.AMBIENTS
    }
