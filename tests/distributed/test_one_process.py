"""However the rows are cut, and wherever the parts are worked on: the answer of one process."""

from __future__ import annotations

import copy

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from partitioned import EXACT, ROUNDED, saved, table
from sklearn.base import clone

from sparsact import distributed
from sparsact.learners.lsh.layout import differing_arrays


def cut(data, chunks):
    """Dask arrays of numpy arrays, each in blocks of its own."""
    return tuple(
        da.from_array(part, chunks=(size,) if part.ndim == 1 else (size, 2))
        for part, size in zip(data, chunks, strict=False)
    )


@pytest.mark.parametrize("name", EXACT)
def test_the_same_file_for_the_cube(name, somewhere, tmp_path):
    estimator = EXACT[name]
    data = table(estimator)
    before = copy.deepcopy(data)
    model = distributed.fit(estimator, cut(data, (29, 61, 317)), somewhere)
    assert saved(model, tmp_path) == saved(clone(estimator).fit(*data), tmp_path)
    assert not hasattr(estimator, "n_features_in_")
    for part, untouched in zip(data, before, strict=True):
        assert_array_equal(part, untouched)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from(sorted(EXACT)), cuts=st.lists(st.integers(0, 83), max_size=21), seed=st.integers(0, 99))
def test_the_same_file_for_any_cut(name, cuts, seed, tmp_path):
    """Blocks may be empty, of one row, or of ones alone."""
    estimator = EXACT[name]
    X, y, weights = table(estimator, m=83, seed=seed)
    sizes = tuple(np.diff([0, *sorted(cuts), 83]).tolist())
    parts = [da.from_array(part, chunks=(sizes, *part.shape[1:])) for part in (X, y, weights)]
    model = distributed.fit(estimator, tuple(parts))
    assert saved(model, tmp_path) == saved(clone(estimator).fit(X, y, weights), tmp_path)


@pytest.mark.parametrize("name", ROUNDED)
def test_equal_within_rounding_and_the_same_again(name, somewhere, tmp_path):
    estimator = ROUNDED[name]
    data = table(estimator)
    parts = cut(data, (23, 50, 100))
    model = distributed.fit(estimator, parts, somewhere)
    whole = clone(estimator).fit(*data)
    values = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    assert_allclose(getattr(model, values)(data[0]), getattr(whole, values)(data[0]), rtol=1e-6, atol=1e-6)
    assert saved(distributed.fit(estimator, parts, None), tmp_path) == saved(model, tmp_path)


@pytest.mark.parametrize("name", ["lsh", "lsh classes", "dsm pca"])
def test_a_layout_does_not_depend_on_the_partitions(name):
    estimator = ROUNDED[name]
    data = table(estimator)
    whole = clone(estimator).fit(*data)
    for chunks in ((317, 317, 317), (40, 7, 9)):
        model = distributed.fit(estimator, cut(data, chunks))
        if name == "dsm pca":
            assert_allclose(model.layer_.bottom.B, whole.layer_.bottom.B, rtol=1e-9, atol=1e-12)
        else:
            assert differing_arrays(model.table_.layout.arrays(), whole.table_.layout.arrays()) == []


@pytest.mark.grid
def test_frames_files_and_batches_are_the_same_rows(client, tmp_path):
    estimator = EXACT["folds"]
    X, y, weights = table(estimator, m=211)
    names = [f"gene {i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(y=y, w=weights)
    whole = saved(clone(estimator).fit(frame[names], y, weights), tmp_path)

    frames = dd.from_pandas(frame, npartitions=5)
    assert saved(distributed.fit(estimator, frames, client, target="y", sample_weight="w"), tmp_path) == whole

    for i, rows in enumerate(np.array_split(np.arange(211), 4)):
        frame.iloc[rows].to_parquet(tmp_path / f"part {i}.parquet")
        frame.iloc[rows].to_csv(tmp_path / f"part {i}.csv", index=False)
    for kind in ("parquet", "csv"):
        pattern = str(tmp_path / f"part *.{kind}")
        assert saved(distributed.fit(estimator, pattern, client, target="y", sample_weight="w"), tmp_path) == whole
        paths = sorted(tmp_path.glob(f"*.{kind}"))
        assert saved(distributed.fit(estimator, paths, target="y", sample_weight="w"), tmp_path) == whole

    batches = ((frame[names].iloc[i : i + 3], y[i : i + 3], weights[i : i + 3]) for i in range(0, 211, 3))
    assert saved(distributed.fit(estimator, batches, client), tmp_path) == whole


@pytest.mark.grid
@pytest.mark.parametrize("name", ["rows", "folds", "lsh"])
def test_batches_that_lie_in_the_same_arrays(name, somewhere, tmp_path):
    """A reader may fill its arrays anew for every batch."""
    X, y, weights = table((EXACT | ROUNDED)[name], m=210)

    def batches(anew):
        rows = tuple(np.empty_like(part[:3]) for part in (X, y, weights))
        for i in range(0, 210, 3):
            for row, part in zip(rows, (X, y, weights), strict=True):
                row[...] = part[i : i + 3]
            yield copy.deepcopy(rows) if anew else rows

    models = [distributed.fit((EXACT | ROUNDED)[name], batches(anew), somewhere) for anew in (True, False)]
    assert saved(models[0], tmp_path) == saved(models[1], tmp_path)


@pytest.mark.parametrize("name", ["folds", "real", "lsh", "lsh classes", "dsm", "dsm pca"])
def test_a_partition_whose_rows_have_no_weight(name):
    estimator = (EXACT | ROUNDED)[name]
    X, y, weights = table(estimator, m=90)
    weights[30:60] = 0
    model, whole = distributed.fit(estimator, cut((X, y, weights), (30, 30, 30))), clone(estimator).fit(X, y, weights)
    values = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    assert_allclose(getattr(model, values)(X), getattr(whole, values)(X), rtol=1e-6, atol=1e-6)


@pytest.mark.grid
def test_unknown_sizes_of_blocks(client, tmp_path):
    """Folds need the number of a row in the whole: it is counted first."""
    estimator = EXACT["folds"]
    X, y, _ = table(estimator)
    kept = X[:, 2] == 1
    parts = cut((X, y), (37, 37))
    some = parts[0][:, 2] == 1
    stages = []
    model = distributed.fit(
        estimator, tuple(part[some] for part in parts), client, progress=lambda p: stages.append(p.stage)
    )
    assert saved(model, tmp_path) == saved(clone(estimator).fit(X[kept], y[kept]), tmp_path)
    assert {"counting", "learning"} == set(stages)


def test_classes_may_be_named(tmp_path):
    estimator = EXACT["classes"]
    X, y, _ = table(estimator)
    stages = []
    labels = ["low", "high", "middle"]
    model = distributed.fit(estimator, cut((X, y), (50, 50)), classes=labels, progress=lambda p: stages.append(p.stage))
    assert set(stages) == {"learning"}
    assert saved(model, tmp_path) == saved(clone(estimator).fit(X, y), tmp_path)


@pytest.mark.grid
def test_a_seed_that_is_not_given_is_drawn_once(client):
    X, y, _ = table(ROUNDED["dsm"])
    estimator = clone(ROUNDED["dsm"]).set_params(random_state=None)
    model = distributed.fit(estimator, cut((X, y), (50, 50)), client)  # else the layers of two workers would differ
    assert model.random_state is None
    assert model.n_rows_ == len(X)
