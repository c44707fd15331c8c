"""A fit that is stopped, however often and wherever, goes on to the same bytes."""

import functools
import json
import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import run

from sparsact import storage
from sparsact.cli.fitting import rows as sampled
from sparsact.datasets.parts import Parts

SIZES = (61, 97, 23, 150)


def of_bits(rng, n_rows):
    bits = rng.integers(0, 2, (n_rows, 5))
    signs = 1.0 - 2 * bits
    y = 2 * signs[:, 0] * signs[:, 3] + signs[:, 1] + 0.1 * rng.normal(size=n_rows)
    kind = np.array(["red", "green", "blue"])[(bits[:, 0] + bits[:, 1])]
    return {f"bit{i}": bits[:, i] for i in range(5)} | {"y": y, "z": y**2 + bits[:, 2], "kind": kind}


def of_numbers(rng, n_rows):
    X = rng.uniform(-1, 1, (n_rows, 2))
    return {"a": X[:, 0], "b": X[:, 1], "bit": rng.integers(0, 2, n_rows), "y": np.abs(X[:, 0]) + X[:, 1] ** 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(8)
    for number, n_rows in enumerate(SIZES):
        pa.csv.write_csv(pa.table(of_bits(rng, n_rows)), path / f"bits-{number}.csv")
        pa.parquet.write_table(pa.table(of_numbers(rng, n_rows)), path / f"numbers-{number}.parquet")
    return path


@pytest.fixture
def small(monkeypatch):
    """Batches of 40 rows, hash tables laid out on about 100 rows, so that a small table is read as a large one."""
    monkeypatch.setattr("sparsact.datasets.tables.BATCH_ROWS", 40)
    monkeypatch.setattr("sparsact.cli.fitting.work.RowSample", functools.partial(sampled.RowSample, most=100))


class Interrupted:
    """Batches of tables, of which every so many a signal comes, as from the keyboard."""

    def __init__(self, monkeypatch):
        self.every, self.count = 0, 0
        real = Parts.batches

        def batches(parts, *args):
            for batch in real(parts, *args):
                self.count += 1
                if self.every and self.count % self.every == 0:
                    signal.raise_signal(signal.SIGINT)
                yield batch

        monkeypatch.setattr(Parts, "batches", batches)


CASES = {
    "bits": ("bits-*.csv", "-t", "y", "--ignore", "z", "--ignore", "kind"),
    "classes": ("bits-*.csv", "-t", "kind", "--ignore", "y", "--ignore", "z"),
    "targets": ("bits-*.csv", "-t", "y", "-t", "z", "--ignore", "kind"),
    "numbers": ("numbers-*.parquet", "-t", "y", "--domain", "real", "--model", "low-degree"),
    "tables": ("numbers-*.parquet", "-t", "y"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fit_stopped_again_and_again_writes_the_same_bytes(capsys, monkeypatch, folder, tmp_path, small, case):
    """Ctrl-C at every third batch, or at every seventh, in every pass over the rows."""
    pattern, *words = CASES[case]
    model, told = tmp_path / "m.sparsact", []
    signals = Interrupted(monkeypatch)
    arguments = ("fit", folder / pattern, *words, "--out", model, "--folds", "3")
    status, out, _ = run(capsys, *arguments, "--json")
    assert status == 0
    told.append(json.loads(out))
    whole = model.read_bytes()
    statistic = tmp_path / "m.statistic"
    for signals.every in (3, 7):
        model.unlink()
        stops = 0
        while (answer := run(capsys, *arguments, "--json", "--resume", statistic))[0] == 130:
            stops += 1
            assert answer[1] == ""
            assert answer[2].startswith("sparsact: stopped: ")
            assert "go on with: sparsact fit" in answer[2]
            assert statistic.is_file()
            assert stops < 200
        assert answer[0] == 0, answer[2]
        assert stops > 3
        assert model.read_bytes() == whole
        assert not statistic.exists()
        told.append(json.loads(answer[1]))
    for other in told[1:]:  # scores, terms and choices are the same too
        assert {k: v for k, v in other.items() if k not in ("seconds", "peak_memory_bytes")} == {
            k: v for k, v in told[0].items() if k not in ("seconds", "peak_memory_bytes")
        }
