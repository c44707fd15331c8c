"""Files as partitions: in the order that every reader of files takes, and large ones in pieces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from partitioned import EXACT, saved
from sklearn.base import clone

from sparsact import LowDegreeRegressorCV, distributed
from sparsact.datasets import files, open_table

NAMES = list("abcde")


def frame(m, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, 2, (m, 5), dtype=np.int8), columns=NAMES)
    return table.assign(y=2.0 * table.a * table.d + rng.normal(size=m))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """One file, which is two pieces."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    frame(600_001).to_parquet(path, row_group_size=100_000)
    return path


def test_files_stand_in_their_natural_order(tmp_path):
    """Part 10 comes after part 9: the folds of rows, and so the models, depend on it."""
    whole = frame(137)
    for i, rows in enumerate(np.array_split(np.arange(137), 11)):
        whole.iloc[rows].to_csv(tmp_path / f"part-{i}.csv", index=False)
    estimator = EXACT["folds"]
    expected = saved(clone(estimator).fit(whole[NAMES], whole.y), tmp_path)
    pattern = tmp_path / "part-*.csv"
    for data in (str(pattern), [str(path) for path in reversed(files(pattern))]):
        assert saved(distributed.fit(estimator, data, target="y"), tmp_path) == expected
    with pytest.raises(ValueError, match="is given twice"):
        distributed.fit(estimator, [str(pattern), tmp_path / "part-3.csv"], target="y")


@pytest.mark.grid
def test_one_large_file_is_several_partitions(large, client, tmp_path):
    estimator = LowDegreeRegressorCV(degrees=(1, 2), alphas=(0.5,), cv=3, random_state=1)
    seen = []
    model = distributed.fit(estimator, large, client, target="y", progress=seen.append)
    assert [(p.stage, p.partitions, p.n_partitions) for p in seen] == [
        ("learning", 1, 3),
        ("learning", 2, 3),
        ("learning", 3, 3),
    ]
    whole = pd.read_parquet(large)
    assert saved(model, tmp_path) == saved(clone(estimator).fit(whole[NAMES], whole.y), tmp_path)


@pytest.mark.grid
def test_pieces_are_read_by_an_encoding_too(large, tmp_path):
    table = open_table(large, "y")
    estimator = EXACT["cells"]
    model = distributed.fit(estimator, large, encoding=table.encoding)
    whole = pd.read_parquet(large)
    assert saved(model, tmp_path) == saved(clone(estimator).fit(whole[NAMES].to_numpy(), whole.y), tmp_path)
