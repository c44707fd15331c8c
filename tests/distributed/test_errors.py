"""What cannot be fitted in partitions, and data that do not fit together: the sentence says which partition."""

from __future__ import annotations

import itertools
import re
import sys
from importlib import import_module

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from partitioned import EXACT, ROUNDED, table
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sparsact import (
    DSMRegressor,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    SparselyActivatedRegressor,
    memory,
)
from sparsact.distributed import fit
from sparsact.distributed.additive import LearnerSum
from sparsact.distributed.partitions import ArrayReader
from sparsact.extras import missing
from sparsact.passes.dask import PassTask, joined, summed
from sparsact.passes.source import Partition

X, Y, _ = table(EXACT["rows"], m=90)


def arrays(X, y, rows=30):
    return da.from_array(X, chunks=(rows, X.shape[1])), da.from_array(y, chunks=rows)


@pytest.mark.parametrize(
    ("estimator", "kind", "message"),
    [
        (SparselyActivatedRegressor(), TypeError, "SparselyActivatedRegressor has no sums to merge"),
        (Ridge(), TypeError, "a Ridge has no sums"),
        (LowDegreeRegressor, TypeError, "LowDegreeRegressor has no sums"),
        (LowDegreeRegressor("auto"), ValueError, 'degree="auto" is chosen by fit, from all rows at once'),
        (DSMRegressor(solver="rmsprop"), ValueError, 'only solver="ridge" keeps sums'),
        (LowDegreeRegressorCV(cv=[([0], [1]), ([1], [0])]), ValueError, "pass a number of folds"),
        (LowDegreeRegressor(-1), ValueError, "'degree' parameter"),
    ],
)
def test_learners_whose_rows_do_not_add_up(estimator, kind, message):
    with pytest.raises(kind, match=message):
        fit(estimator, arrays(X, Y))


def test_the_partition_that_holds_a_nan(somewhere):
    y = Y.copy()
    y[70] = np.nan
    with pytest.raises(ValueError, match=r"^partition 2: .*NaN"):
        fit(EXACT["rows"], arrays(X, y), somewhere)
    points = X.astype(float)
    points[31, 4] = np.nan
    for name in ("rows", "lsh"):
        with pytest.raises(ValueError, match=r"^partition 1: .*NaN"):
            fit((EXACT | ROUNDED)[name], arrays(points, Y), somewhere)


def test_the_batch_that_is_narrow(somewhere):
    batches = [(X[:5], Y[:5]), (X[5:9], Y[5:9]), (X[9:20, :4], Y[9:20])]
    with pytest.raises(ValueError, match=r"batch 0 and batch 2: cannot merge 4 columns, .* into 6"):
        fit(EXACT["rows"], batches, somewhere)
    with pytest.raises(ValueError, match=r"batch 0 and batch 2: columns are 6 in the first and 4 in the second"):
        fit(ROUNDED["lsh"], [(x.astype(float), y) for x, y in batches], somewhere)


def test_partitions_that_are_written_differently():
    mixed = np.concatenate([X[:45], 1 - 2 * X[45:]])
    with pytest.raises(
        ValueError, match=r"partition 0 and partition 1: cannot merge a learner of signs into one of bits.*domain=.real"
    ):
        fit(EXACT["rows"], arrays(mixed, Y, 45))


def test_partitions_without_rows():
    none = da.zeros((0, 6), chunks=(0, 6)), da.zeros(0, chunks=0)
    for estimator in (EXACT["rows"], EXACT["classes"], ROUNDED["lsh"]):
        with pytest.raises(ValueError, match="the data have no rows"):
            fit(estimator, none)
    with pytest.raises(ValueError, match="the data have no rows"):
        fit(EXACT["rows"], [])
    sizes = ((0, 50, 0, 40), 6), ((0, 50, 0, 40),)
    some = tuple(da.from_array(part, chunks=chunks) for part, chunks in zip((X, Y), sizes, strict=True))
    assert fit(EXACT["rows"], some).n_samples_seen_ == 90


def test_blocks_that_do_not_match():
    points, targets = arrays(X, Y)
    with pytest.raises(ValueError, match="X has 90 rows and y 80"):
        fit(EXACT["rows"], (points, targets[:80]))
    unknown = points[points[:, 0] >= 0]
    with pytest.raises(ValueError, match="X has 3 blocks and y 2, of unknown sizes; call compute_chunk_sizes"):
        fit(EXACT["rows"], (unknown, targets.rechunk(50)))
    with pytest.raises(ValueError, match="partition 1: X has 30 rows and y 29"):
        fit(EXACT["rows"], (unknown, targets[:89].rechunk(((30, 29, 30),))))


def test_tables_want_a_target(tmp_path):
    frame = dd.from_pandas(pd.DataFrame({"a": [0, 1, 1], "y": [1.0, 2.0, 3.0]}), npartitions=1)
    with pytest.raises(ValueError, match="pass target="):
        fit(EXACT["rows"], frame)
    with pytest.raises(ValueError, match="no column 'z'"):
        fit(EXACT["rows"], frame, target="z")
    with pytest.raises(ValueError, match="name columns of a table"):
        fit(EXACT["rows"], arrays(X, Y), target="y")
    with pytest.raises(FileNotFoundError, match=r"no file matches .*nothing\*"):
        fit(EXACT["rows"], str(tmp_path / "nothing*.csv"), target="y")
    (tmp_path / "b.csv").write_text("a,y\n0,1\n1,red\n")
    with pytest.raises(ValueError, match=r"^b.csv: column 'y', row 2: 'red' is not a finite number"):
        fit(EXACT["rows"], tmp_path / "b.csv", target="y")
    with pytest.raises(ValueError, match=r"^b.csv: there is no column 'z'; the columns are a, y"):
        fit(EXACT["rows"], tmp_path / "b.csv", target="z")


def test_data_of_no_known_kind():
    with pytest.raises(TypeError, match=r"pass .X, y. Dask arrays, a Dask DataFrame, paths, or batches"):
        fit(EXACT["rows"], X)
    with pytest.raises(TypeError, match=r"has no targets; pass .X, y."):
        fit(EXACT["rows"], arrays(X, Y)[0])
    with pytest.raises(ValueError, match=r"batch 0 must be .X, y."):
        fit(EXACT["rows"], [X])
    with pytest.raises(ValueError, match="tuple of 4"):
        fit(EXACT["rows"], (*arrays(X, Y), *arrays(X, Y)))
    with pytest.raises(TypeError, match="`client` is a str"):
        fit(EXACT["rows"], arrays(X, Y), "tcp://127.0.0.1:1")


def test_classes_of_batches_are_named():
    points, labels, _ = table(EXACT["classes"], m=40)
    with pytest.raises(ValueError, match="pass classes="):
        fit(EXACT["classes"], [(points, labels)])
    with pytest.raises(ValueError, match="has no classes; leave `classes` out"):
        fit(EXACT["rows"], arrays(X, Y), classes=[0, 1])
    with pytest.raises(ValueError, match=r"batch 0: label .* is not among the classes"):
        fit(EXACT["classes"], [(points, labels)], classes=["low", "high"])
    assert fit(EXACT["classes"], [(points, labels)], classes=np.unique(labels)).predict(points).shape == (40,)


def test_without_dask_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr("sparsact.distributed", sys.modules["sparsact.distributed"])  # which the import replaces
    for name in [name for name in sys.modules if name.startswith("sparsact.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=re.escape(missing("sparsact.distributed", "dask"))):
        import_module("sparsact.distributed").fit(LowDegreeRegressor(), [])


def test_the_estimator_is_left_alone():
    estimator = clone(EXACT["rows"])
    before = vars(estimator).copy()
    fit(estimator, arrays(X, Y))
    assert vars(estimator) == before


def test_hash_tables_that_outgrow_the_memory(monkeypatch):
    points, targets, _ = table(ROUNDED["lsh"], m=90)
    blank = clone(ROUNDED["lsh"]).fit(points, targets).blank()
    task = PassTask(Partition("partition 2", ArrayReader()))
    parts = [
        summed(LearnerSum(blank), PassTask(Partition(f"partition {i}", ArrayReader())), points[i::2], targets[i::2])
        for i in (0, 1)
    ]
    monkeypatch.setattr(memory, "SMALL", 0)

    def refused(step, *arguments):
        """What is said as there is more and more memory, until there is enough."""
        for free in itertools.count(0, 1000):
            monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
            try:
                step(*arguments)
            except MemoryError as error:
                yield str(error)
            else:
                return

    whole = list(refused(summed, LearnerSum(blank), task, points, targets))
    assert whole
    assert all(re.match(r"partition 2: rows fall into .* buckets, which need", said) for said in whole)
    said = list(refused(joined, LearnerSum(blank), parts))
    assert said[0].startswith("partition 0 to partition 0: rows fall into")
    assert said[-1].startswith("partition 0 to partition 1: rows fall into")


def test_hash_tables_fitted_in_parts_remember_no_rows():
    points, targets, _ = table(ROUNDED["lsh"], m=90)
    model = fit(ROUNDED["lsh"], arrays(points, targets))
    with pytest.raises(ValueError, match="remembers no rows"):
        model.remove(points[:1], targets[:1])
    assert model.n_samples_seen_ == 90
