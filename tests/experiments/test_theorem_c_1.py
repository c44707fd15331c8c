"""Theorem C.1: buckets against a count by hand, the rules on made-up rows."""

import numpy as np
import pytest

from sparsact import LSHRegressor
from sparsact.experiments import Outcome, Row, Rows, Scale
from sparsact.experiments.paper_b import theorem_c_1 as experiment
from sparsact.experiments.paper_b import theorem_c_1_claims as claims

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


def row(k=2, power=-0.5, seed=0, ambient=8, **values):
    buckets = [10.0, 100.0, 1000.0]
    errors = [n**power for n in buckets]
    told = {
        "buckets": buckets,
        "mean_errors": errors,
        "sup_errors": [3 * e for e in errors],
        "printed_sizes": [2 * n for n in buckets],
        "proof_sizes": [0.5 * n for n in buckets],
        "pruned_by_all": [0.0, 0.0, 0.2],
        "pruned_points": [0.0, 0.1, 0.4],
        "pruned_buckets": [0.0, 0.2, 0.8],
    }
    manifold = {1: "circle", 2: "sphere"}[k]
    parameters = {"manifold": manifold, "k": k, "ambient": ambient, "rows": 20_000, "seed": seed}
    return Row("0", "theorem-c-1", 1, parameters, told | values, 1.0, "", {}, {}, "")


def outcome(name, rows):
    return {claim.name: claim for claim in claims.CLAIMS}[name].verdict(Rows(rows)).outcome


def test_slopes():
    assert outcome("slope-sphere", [row(seed=s) for s in (0, 1)]) is Outcome.HOLDS
    assert outcome("slope-sphere", [row(seed=s, power=-0.2) for s in (0, 1)]) is Outcome.DOES_NOT_HOLD
    assert outcome("slope-circle", [row(seed=s) for s in (0, 1)]) is Outcome.UNDECIDED
    assert outcome("exponent", [row(seed=s) for s in (0, 1)]) is Outcome.HOLDS
    assert outcome("exponent", [row(seed=s, k=1) for s in (0, 1)]) is Outcome.DOES_NOT_HOLD


def test_sizes():
    assert outcome("size-of-the-statement", [row()]) is Outcome.HOLDS
    assert outcome("size-of-the-proof", [row()]) is Outcome.DOES_NOT_HOLD
    assert outcome("size-of-the-proof", [row(), row(proof_sizes=[9e9] * 3)]) is Outcome.DOES_NOT_HOLD


def test_ambient_dimension():
    more = [row(seed=1, ambient=16, buckets=[2560.0, 25_600.0, 256_000.0])]
    assert outcome("ambient-dimension", [row(), row(ambient=16)]) is Outcome.HOLDS
    assert outcome("ambient-dimension", [row(seed=1), *more]) is Outcome.DOES_NOT_HOLD
    assert outcome("ambient-dimension", [row(), *more]) is Outcome.UNDECIDED  # no pair


def test_pruning():
    seeds = (0, 1, 2)
    assert outcome("pruning", [row(seed=s) for s in seeds]) is Outcome.HOLDS_ONLY_IF
    assert outcome("pruning", [row(seed=s, pruned_by_all=[0.0] * 3) for s in seeds]) is Outcome.HOLDS
    assert outcome("pruning", [row(seed=s, pruned_by_all=[0.5] * 3) for s in seeds]) is Outcome.DOES_NOT_HOLD
    assert outcome("emptied-tables", [row(seed=s) for s in seeds]) is Outcome.HOLDS
    assert outcome("emptied-tables", [row(seed=s, pruned_buckets=[0.1] * 3) for s in seeds]) is Outcome.DOES_NOT_HOLD


def test_scales():
    tasks = experiment.EXPERIMENT.tasks(Scale.FULL)
    assert {(t.parameters["manifold"], t.parameters["ambient"]) for t in tasks} == {
        (manifold, d) for manifold in claims.DIMENSIONS for d in claims.AMBIENTS
    }
