from types import SimpleNamespace

import numpy as np
import pytest

from sparsact_papers.data import Images
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.paper_b import cifar10
from sparsact_papers.paper_b.cifar10 import EXPERIMENT, FIGURE
from sparsact_papers.paper_b.cifar10_claims import HALF, TABLE, TIMES
from sparsact_papers.results import Row


def rows(gains, *, n_seeds=3, cells=FIGURE, base=70.0, noise=0.05):
    """Made-up rows: accuracy of a seed, plus the gain of a model, plus a little."""
    rng = np.random.default_rng([0, 1])
    seeds = rng.normal(0, 3, n_seeds)  # far more than the gains: only pairs tell them
    return Rows(
        row(model, n_active, seed, base + seeds[seed] + gains.get(model, 0.0) + noise * rng.normal())
        for seed in range(n_seeds)
        for model, n_active in cells
    )


def row(model, n_active, seed, last, best=None):
    best = last + 1 if best is None else best
    values = {"accuracies": [best, last], "losses": [2.0, 1.0], "last": last, "best": best, "best_epoch": 1}
    parameters = {"model": model, "n_active": n_active, "width": TIMES[model] * n_active, "seed": seed}
    return Row("", "cifar10", 1, parameters, values, 1.0, "", {}, {}, "")


def test_tasks_are_the_table_and_the_dense_layer_of_the_total_width():
    for scale, n_seeds in ((Scale.SMOKE, 1), (Scale.QUICK, 1), (Scale.FULL, 3)):
        tasks = EXPERIMENT.tasks(scale)
        assert len(tasks) == 7 * n_seeds
        for task in tasks:
            assert task.parameters["width"] == TIMES[task.parameters["model"]] * task.parameters["n_active"]
    full = EXPERIMENT.tasks(Scale.FULL)[0].parameters
    assert (full["n_train"], full["n_test"]) == (50_000, 10_000)


@pytest.fixture
def made_up(monkeypatch):
    """Ten images for the set."""
    rng = np.random.default_rng([0, 2])
    images, labels = rng.integers(256, size=(10, 3, 32, 32), dtype=np.uint8), np.arange(10, dtype=np.uint8)
    data = Images(images[:6], labels[:6], images[6:], labels[6:], (), "", "")
    monkeypatch.setattr(cifar10, "_images", lambda n_train, n_test: data)


def test_a_measurement_tells_every_epoch_and_is_repeated_exactly(made_up):
    pytest.importorskip("torch")
    parameters = dict(EXPERIMENT.tasks(Scale.SMOKE)[1].parameters) | {"n_train": 6, "n_test": 4, "epochs": 3}
    first, again = (EXPERIMENT.measure(**parameters) for _ in range(2))
    other = EXPERIMENT.measure(**parameters | {"seed": 1})
    assert first["losses"] == again["losses"] != other["losses"]
    assert first["accuracies"] == again["accuracies"]
    assert len(first["accuracies"]) == len(first["losses"]) == 3
    assert first["last"] == first["accuracies"][-1]
    assert first["best"] == max(first["accuracies"]) == first["accuracies"][first["best_epoch"] - 1]
    assert all(accuracy in (0, 25, 50, 75, 100) for accuracy in first["accuracies"])


def test_what_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path))
    monkeypatch.setattr(cifar10, "find_spec", lambda name: SimpleNamespace(name=name))
    assert "set SPARSACT_DATA" in EXPERIMENT.unmet()
    monkeypatch.setattr(cifar10, "find_spec", lambda name: None)
    assert 'pip install "sparsact[torch]"' in EXPERIMENT.unmet()


@pytest.mark.parametrize("chart", EXPERIMENT.charts, ids=lambda chart: chart.name)
def test_charts_of_all_rows_of_one_and_of_none(chart):
    found = rows({HALF: 1.0})
    for some in (found, found[:1]):
        frame = chart.frame(some)
        assert len({len(column) for column in frame.values()}) == 1
        assert chart.plot(frame).axes
    assert not any(chart.frame(Rows([])).values())


def test_the_frames_hold_the_numbers_of_the_rows():
    found = rows({}, cells=TABLE)
    table = next(chart for chart in EXPERIMENT.charts if chart.name == "table-2").frame(found)
    cell = found.where(model=HALF, n_active=512)
    place = [*zip(table["model"], table["n_active"], strict=True)].index((HALF, 512))
    assert table["last"][place] == np.median(cell.column("last"))
    assert table["printed"][place] == 71.33
    epochs = next(chart for chart in EXPERIMENT.charts if chart.name == "epochs").frame(found)
    second = [
        accuracy
        for model, n, epoch, accuracy in zip(
            *(epochs[name] for name in ("series", "n_active", "epoch", "accuracy")), strict=True
        )
        if (model, n, epoch) == (HALF, 512, 2)
    ]
    assert second == [table["last"][place]]
