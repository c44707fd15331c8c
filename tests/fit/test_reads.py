"""How often a fit reads its table."""

from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from grids import few_of

import sparsact as sa
from sparsact.datasets.table_files import Parts
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.lsh import LSHCandidate

pytestmark = pytest.mark.usefixtures("few_rivals")

BITS, NUMBERS = [f"b{i}" for i in range(5)], ["u", "v"]


def columns(n_rows):
    rng = np.random.default_rng(n_rows)
    bits, x = rng.integers(0, 2, (n_rows, 5), dtype=np.int8), rng.uniform(-2, 2, (n_rows, 2))
    y = 2.0 * (bits[:, 0] ^ bits[:, 3]) + bits[:, 1] + 0.1 * rng.normal(size=n_rows)
    bent = np.abs(x[:, 0]) + np.abs(x[:, 1]) + 0.05 * rng.normal(size=n_rows)
    numbers = {"u": x[:, 0], "v": x[:, 1], "y": y, "z": 1 - y, "bent": bent, "kind": np.where(y > 1, "high", "low")}
    return dict(zip(BITS, bits.T, strict=True)) | numbers


def write(path, rows, n_rows=311):
    table = pa.table(columns(n_rows))[rows]
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


@pytest.fixture
def rows_read(monkeypatch):
    """Rows that batches of files have had so far."""
    real, rows = Parts.batches, [0]

    def batches(parts, *given):
        for batch in real(parts, *given):
            rows[0] += len(batch)
            yield batch

    monkeypatch.setattr(Parts, "batches", batches)
    return rows


CASES = {  # target, options, reads
    "bits": ("y", {"columns": BITS, "folds": 2}, 2),
    "bits with a degree": ("y", {"columns": BITS, "degree": 2, "alpha": 1.0}, 2),
    "held-out rows": ("y", {"columns": BITS, "held_out_rows": True, "folds": 2}, 2),
    "real columns": ("y", {"columns": [*BITS, *NUMBERS], "model": "low-degree"}, 2),
    "several targets": (["y", "z"], {"columns": BITS}, 2),
    "classes": ("kind", {"columns": BITS, "folds": 2}, 2),
    "hash tables of few rows": ("bent", {"columns": NUMBERS, "folds": 2}, 2),
    "hash tables of many rows": ("bent", {"columns": NUMBERS, "folds": 3}, 3),
    "classes in hash tables": ("kind", {"columns": NUMBERS, "folds": 3, "model": "lsh"}, 3),
}


FILES = [*product(CASES, ["csv"]), ("bits", "parquet"), ("hash tables of many rows", "parquet")]
QUICK = ("bits", "classes", "classes in hash tables")


@pytest.mark.grid
@pytest.mark.parametrize(("case", "ending"), few_of(FILES, [*product(QUICK, ["csv"]), FILES[-1]]))
def test_each_pass_reads_each_row_once(tmp_path, monkeypatch, rows_read, case, ending):
    """One of the reads is for the encoding, unless it is given."""
    target, options, reads = CASES[case]
    if "many" in case or "classes in" in case:
        monkeypatch.setitem(candidates(), "lsh", LSHCandidate(most_rows=150))
    path = [write(tmp_path / f"t{i}.{ending}", slice(start, start + 64)) for i, start in enumerate(range(0, 311, 64))]
    first = sa.fit_table(path, target, **options)
    assert rows_read[0] == reads * 311
    again = sa.fit_table(path, target, encoding=first.encoding, **{k: v for k, v in options.items() if k != "columns"})
    assert rows_read[0] == (2 * reads - 1) * 311
    assert (again.scores.r2, again.scores.linear_r2, again.scores.rmse) == (
        first.scores.r2,
        first.scores.linear_r2,
        first.scores.rmse,
    )
    assert again.choices == first.choices


@pytest.mark.slow
def test_hash_tables_beyond_the_sample_read_the_table_three_times(tmp_path, rows_read):
    path = write(tmp_path / "t.parquet", slice(None), 140_000)
    result = sa.fit_table(path, "bent", columns=NUMBERS, folds=3)
    assert (result.choices.kind, rows_read[0]) == ("lsh", 3 * 140_000)
    assert result.model.n_samples_seen_ == 140_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(40)}, "target 'y' is constant .0 in every row."),
        ({"y": 1e160 * np.arange(40.0)}, "target 'y' reaches a size of 4e.161, whose square overflows a float"),
        ({"kind": ["low"] * 40}, "target 'kind' is constant .low in every row."),
    ],
)
def test_targets_are_looked_at_where_the_encoding_is_given(change, message):
    (target,) = change
    frame = pd.DataFrame(columns(40))
    encoding = sa.fit_table(frame, target, columns=BITS, degree=1, alpha=1).encoding
    with pytest.raises(ValueError, match=message):
        sa.fit_table(frame.assign(**change), target, encoding=encoding)
    for n_rows, message in ((0, "the table has no rows"), (3, "3 rows are fewer than 5 folds")):
        with pytest.raises(ValueError, match=message):
            sa.fit_table(frame.iloc[:n_rows], target, encoding=encoding)
