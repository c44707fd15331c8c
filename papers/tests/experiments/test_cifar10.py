from types import SimpleNamespace

import numpy as np
import pytest

from sparsact_papers.common import real_data
from sparsact_papers.data import Images
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.paper_b import cifar10
from sparsact_papers.paper_b.cifar10 import EXPERIMENT, FIGURE, HALF, TABLE, TIMES
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


def row(model, n_active, seed, accuracy):
    values = {"validation": [accuracy + 1, accuracy], "losses": [2.0, 1.0], "accuracy": accuracy, "epoch": 1}
    parameters = {"model": model, "n_active": n_active, "width": TIMES[model] * n_active, "seed": seed}
    return Row("", "cifar10", 1, parameters, values, 1.0, "", {}, {}, "")


def test_tasks_are_the_table_and_the_dense_layer_of_the_total_width_a_seed_after_the_other():
    for scale, n_seeds in ((Scale.SMOKE, 2), (Scale.QUICK, 2), (Scale.FULL, 10)):
        tasks = EXPERIMENT.tasks(scale)
        assert [task.parameters["seed"] for task in tasks] == [seed for seed in range(n_seeds) for _ in range(7)]
        for task in tasks:
            assert task.parameters["width"] == TIMES[task.parameters["model"]] * task.parameters["n_active"]
    full = EXPERIMENT.tasks(Scale.FULL)[0].parameters
    assert (full["n_train"], full["n_validation"], full["n_test"]) == (50_000, 5000, 10_000)


@pytest.fixture
def made_up(monkeypatch):
    """Ten images for the set."""
    rng = np.random.default_rng([0, 2])
    images, labels = rng.integers(256, size=(10, 3, 32, 32), dtype=np.uint8), np.arange(10, dtype=np.uint8)
    data = Images(images[:6], labels[:6], images[6:], labels[6:], (), "", "")
    monkeypatch.setattr(cifar10, "_images", lambda n_train, n_test: data)


def test_a_measurement_tells_every_epoch_and_is_repeated_exactly(made_up):
    pytest.importorskip("torch")
    sizes = {"n_train": 6, "n_validation": 2, "n_test": 4, "epochs": 3}
    parameters = dict(EXPERIMENT.tasks(Scale.SMOKE)[1].parameters) | sizes
    first, again = (EXPERIMENT.measure(**parameters) for _ in range(2))
    other = EXPERIMENT.measure(**parameters | {"seed": 1})
    assert first["losses"] == again["losses"] != other["losses"]
    assert first["validation"] == again["validation"]
    assert len(first["validation"]) == len(first["losses"]) == 3
    assert first["accuracy"] in (0, 25, 50, 75, 100)
    assert all(accuracy in (0, 50, 100) for accuracy in first["validation"])


@pytest.mark.parametrize(
    ("validation", "told", "seen"), [([1, 3, 3, 2, 9], 2, 4), ([5, 1, 1, 1], 1, 3), ([1, 2, 1], 2, 3)]
)
def test_training_ends_when_the_validation_images_gain_no_more(made_up, monkeypatch, validation, told, seen):
    at = []

    def trained(model, train, held_out, **_):
        np.testing.assert_array_equal(train[1], [0, 1, 2, 3])
        np.testing.assert_array_equal(held_out[1], [4, 5])
        for i, share in enumerate(validation, start=1):
            at[:] = [i]
            yield cifar10.Epoch(1.0, share / 10, 0.5)

    monkeypatch.setattr(cifar10, "trained", trained)
    monkeypatch.setattr(cifar10, "network", lambda **_: None)
    monkeypatch.setattr(cifar10, "accuracy", lambda model, images, labels, device: (at[0] + len(labels)) / 10)
    parameters = dict(EXPERIMENT.tasks(Scale.SMOKE)[0].parameters)
    found = EXPERIMENT.measure(**parameters | {"n_train": 6, "n_validation": 2, "n_test": 4, "patience": 2})
    assert (found["epoch"], len(found["validation"])) == (told, seen)
    assert found["accuracy"] == pytest.approx(10 * (told + 4))  # of the four test images, after that epoch


def test_what_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path))
    monkeypatch.setattr(real_data, "find_spec", lambda name: SimpleNamespace(name=name))
    assert "set SPARSACT_DATA" in EXPERIMENT.unmet()
    monkeypatch.setattr(real_data, "find_spec", lambda name: None)
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
    assert table["accuracy"][place] == np.median(cell.column("accuracy"))
    assert table["printed"][place] == 71.33
    epochs = next(chart for chart in EXPERIMENT.charts if chart.name == "epochs").frame(found)
    second = [
        accuracy
        for model, n, epoch, accuracy in zip(
            *(epochs[name] for name in ("series", "n_active", "epoch", "accuracy")), strict=True
        )
        if (model, n, epoch) == (HALF, 512, 2)
    ]
    assert second == [table["accuracy"][place]]
