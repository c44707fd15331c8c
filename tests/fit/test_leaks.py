"""A column through which boosted trees alone predict the target is named."""

import numpy as np
import pyarrow as pa
import pytest
from fit.row_tables import bits

import sparsact as sa
from sparsact.fit.leaks import leaks
from sparsact.fit.scores import CandidateModel, FoldScores
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch


def leaking(others=0.5, trees=0.995, tells=True):
    """What is said of a column of numbers that names the level of a target by an arbitrary code, by models' scores."""
    rng = np.random.default_rng(14)
    level, values, codes = rng.integers(0, 30, 1000), rng.normal(size=30), rng.permutation(30) / 1.0
    y = values[level] + 0.01 * rng.normal(size=1000)
    data = {"a": bits(1000)[:, 0], "x": rng.normal(size=1000), "code": codes[level], "y": y}
    data |= {} if tells else {"again": codes[level] ** 3}
    encoded = sa.datasets.open_table(pa.table(data), "y", domain="auto")
    sample = RowSample(1000, 5, 0)
    sample.add(Batch(*next(encoded.batches()), None, None, 0))
    models = [("linear", 0.1, "low-degree"), ("hash tables", others, "lsh"), ("trees", trees, "trees")]
    return leaks(
        encoded.encoding, sample, [CandidateModel(n, FoldScores((r,) * 5), kind=kind) for n, r, kind in models]
    )


@pytest.mark.grid
def test_a_column_through_which_trees_alone_predict_is_named():
    (warning,) = leaking()
    start = "warning: boosted trees predict y through code (held-out R² 0.995, without it "
    assert warning.startswith(start)
    assert float(warning.removeprefix(start).split(")")[0]) < 0.5
    assert leaking(others=0.95) == leaking(trees=0.98) == leaking(tells=False) == []
