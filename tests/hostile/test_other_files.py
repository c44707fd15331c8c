"""Rows of results, checkpoints and inputs of models that were made up: passed over or refused by name."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from sparsact.cli.torch_model import batches_in
from sparsact.saving import modelfile
from sparsact_papers.experiments import Row
from sparsact_papers.results import Store, Task

TASK = Task("e", 1, {"seed": 0})
ROW = asdict(Row(TASK.name, "e", 1, {"seed": 0}, {"error": 1.0}, 0.5, "", {}, {}, ""))
STRANGE = (None, [], {}, "", "<script>", 1, -1.5, True, float("nan"), 10**400, [[[]]], {"a": {"b": 1}})


@pytest.mark.parametrize("field", ROW)
def test_rows_of_strange_types(tmp_path, field):
    lines = [json.dumps(ROW | {field: value}) for value in STRANGE]
    (tmp_path / "e.jsonl").write_text("\n".join(lines), encoding="utf-8")
    store = Store(tmp_path)
    for row in store.of([TASK]):
        assert isinstance(row.seconds, int | float)
        assert dict(row.parameters) == {"seed": 0}
    assert len(store) + store.n_unreadable >= 1
    assert 0 <= sum(store.seconds("e")) < 10


def test_lines_that_are_no_rows(tmp_path):
    lines = [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"x"',
        b"9" * 10_000,
        json.dumps(ROW).encode(),
    ]
    (tmp_path / "e.jsonl").write_bytes(b"\n".join(lines))
    store = Store(tmp_path)
    assert (len(store), store.n_unreadable) == (1, len(lines) - 1)


@pytest.mark.parametrize("shape", [(2**40, 3), (0, 3), (2**31, 2**31), (-1, 3), (3, 2**62)])
def test_inputs_that_claim_more_than_they_hold(tmp_path, shape):
    torch = pytest.importorskip("torch", reason="inputs are for models of torch")
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        file.write(bytes(64))
    with pytest.raises(ValueError, match=r"x\.npy"):
        next(iter(batches_in(path, torch.nn.Linear(3, 2), 4)))


@pytest.mark.parametrize("dtype", ["O", "U3", "c16", "M8[s]"])
def test_inputs_of_no_number(tmp_path, dtype):
    torch = pytest.importorskip("torch", reason="inputs are for models of torch")
    np.save(tmp_path / "x.npy", np.zeros(3, dtype=dtype), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x\.npy"):
        next(iter(batches_in(tmp_path / "x.npy", torch.nn.Linear(3, 2), 4)))


@pytest.mark.parametrize(
    ("state", "arrays"),
    [
        ({}, {}),
        ({"settings": [], "rows": []}, {}),
        ({"settings": {}, "rows": {}}, {}),
        ({"settings": {}, "rows": []}, {}),
        ({"settings": {}, "rows": []}, {"model.weight": np.zeros(5), "model.bias": np.zeros(2)}),
        ({"settings": {}, "rows": []}, {"optimizer.x.y": np.zeros(2), "optimizer.": np.zeros(1)}),
    ],
)
def test_checkpoints_that_lack_something(tmp_path, state, arrays):
    torch = pytest.importorskip("torch", reason="training needs torch")
    from sparsact_papers.training import checkpoint

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    training = checkpoint.TrainingState(model, optimizer, torch.Generator(), torch.device("cpu"))
    modelfile.write(tmp_path / checkpoint.FILE, checkpoint.KIND, state, arrays)
    with pytest.raises(modelfile.ModelFileError, match=checkpoint.FILE):
        checkpoint.read(tmp_path, {}, training)
