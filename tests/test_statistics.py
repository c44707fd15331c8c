"""The contract of statistics: parts merged in any grouping, and a state that travelled, are the sums of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsact import LowDegreeRegressor
from sparsact.distributed.additive import LearnerSum
from sparsact.distributed.passes import DistinctSample, LabelSet
from sparsact.learners.dsm.training import RidgeStatistic
from sparsact.learners.low_degree.compact_sums import Cells, Moments
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.learners.points import pack
from sparsact.passes.dask import Engine
from sparsact.passes.progress import StageProgress
from sparsact.passes.resumable import Checkpoint
from sparsact.passes.source import Partition, Pass
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch, Statistic

N, T, M = 5, 2, 83
RNG = np.random.default_rng(3)
BITS = RNG.integers(0, 2, (M, N))
Y = RNG.normal(size=(M, T))
WEIGHTS = RNG.integers(1, 9, M) / 4  # whose sums are exact in any order
FAMILY = Family.full(N, 2)


def rows(part):
    return Batch(BITS[part], Y[part], WEIGHTS[part], first_row=part.start)


def points(part):
    return Batch(pack(BITS[part], "bits"), Y[part], WEIGHTS[part])


def features(part):
    return Batch(1.0 * BITS[part], Y[part], WEIGHTS[part])


def labels(part):
    return Batch(BITS[part], (Y[part, 0] > 0.3).astype(int))


@dataclass
class Largest:
    """A statistic of the tests alone: the largest target. A new one is a file of its own, and an entry below."""

    n_rows: int = 0
    value: float = -np.inf

    def empty(self):
        return Largest()

    def add(self, batch):
        self.merge(Largest(len(batch), batch.y.max(initial=-np.inf)))

    def merge(self, other):
        self.n_rows, self.value = self.n_rows + other.n_rows, max(self.value, other.value)

    def state(self):
        return {"n_rows": self.n_rows}, {"value": np.array([self.value])}

    def restore(self, state, arrays):
        self.n_rows, self.value = state["n_rows"], float(arrays["value"][0])


@dataclass(frozen=True)
class Rows:
    """The rows as a source, which begins anywhere, and as the reader of a partition."""

    batch_of: Callable[[slice], Batch]
    size: int = 20

    def batches(self, first_row=0, stop=M):
        for start in range(first_row, stop, self.size):
            yield self.batch_of(slice(start, min(start + self.size, stop)))


EXACT = {
    "largest": (Largest(), rows),
    "distinct points": (DistinctPoints(N, T), points),
    "cells": (Cells(N, T), points),
    "moments": (Moments(FAMILY, T), points),
    "sample": (RowSample(20, 3, 0), rows),
    "sample of all": (RowSample(M, 3, 0), rows),
    "labels": (LabelSet(), labels),
    "distinct sample": (DistinctSample(20), rows),
    "learner": (LearnerSum(LowDegreeRegressor(2, domain="cube")), rows),
}
ROUNDED = {"real columns": (CentredMoments(FAMILY, T), features), "masked features": (RidgeStatistic(N, T), features)}
CASES = EXACT | ROUNDED


def total(statistic, batch_of, cuts):
    found = statistic.empty()
    for start, stop in zip([0, *cuts], [*cuts, M], strict=True):
        found.add(batch_of(slice(start, stop)))
    return found


def assert_same(case, one, other):
    (state, arrays), (expected, known) = one.state(), other.state()
    assert state == expected
    assert arrays.keys() == known.keys()
    for name, array in arrays.items():
        if case in EXACT:
            assert_array_equal(array, known[name])
        else:
            assert_allclose(array, known[name], rtol=1e-10, atol=1e-12)
    assert one.n_rows == other.n_rows


@pytest.mark.parametrize("case", CASES)
def test_parts_merged_in_any_grouping_are_the_whole(case):
    statistic, batch_of = CASES[case]
    assert isinstance(statistic, Statistic)
    whole = total(statistic, batch_of, [])
    assert whole.n_rows > 0
    assert_same(case, total(statistic, batch_of, [7, 40]), whole)
    first, second, third = (statistic.empty() for _ in range(3))
    for part, bounds in zip((first, second, third), ((0, 30), (30, 31), (31, M)), strict=True):
        part.add(batch_of(slice(*bounds)))
    second.merge(third)
    before = second.state()
    first.merge(second)
    assert_same(case, first, whole)
    assert before[0] == second.state()[0]


@pytest.mark.parametrize("case", CASES)
def test_a_state_goes_on_where_it_was_taken(case):
    statistic, batch_of = CASES[case]
    half, resumed = total(statistic, batch_of, []).empty(), statistic.empty()
    half.add(batch_of(slice(0, 50)))
    resumed.restore(*half.state())
    assert_same(case, resumed, half)
    resumed.add(batch_of(slice(50, M)))
    assert_same(case, resumed, total(statistic, batch_of, [50]))


@pytest.mark.parametrize("case", CASES)
def test_an_empty_one_has_no_rows_and_changes_nothing(case):
    statistic, batch_of = CASES[case]
    whole = total(statistic, batch_of, [])
    nothing = whole.empty()
    assert nothing.n_rows == 0
    expected = total(statistic, batch_of, [])
    whole.merge(nothing)
    assert_same(case, whole, expected)


@pytest.mark.parametrize("case", CASES)
def test_a_pass_in_one_process_by_workers_and_resumed_are_the_same(case, tmp_path):
    statistic, batch_of = CASES[case]
    whole, source = total(statistic, batch_of, []), Rows(batch_of)
    bounds = [(0, 30), (30, 31), (31, 31), *((start, min(start + 5, M)) for start in range(31, M, 5))]
    parts = [Partition(f"{start} to {stop}", source, (start, stop), stop - start) for start, stop in bounds]
    apart = statistic.empty()
    assert Engine(None).run(Pass("sum", source, apart, lambda: parts), StageProgress(None, "learning")) == M
    assert_same(case, apart, whole)

    def stopped(first_row):
        yield from islice(source.batches(first_row), 2)
        raise KeyboardInterrupt

    file, stage = tmp_path / "sums", StageProgress(None, "learning")
    first, second = Checkpoint.at(file, 0), Checkpoint.at(file, 0)
    first.begin([], {})
    with pytest.raises(KeyboardInterrupt):
        first.run(Pass("sum", SimpleNamespace(batches=stopped), statistic.empty()), stage)
    second.begin([], {})
    resumed = second.run(Pass("sum", source, statistic.empty()), stage)
    assert 0 < stage.resumed < M
    assert_same(case, resumed, whole)
