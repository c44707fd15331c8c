from __future__ import annotations

import numpy as np
import pytest

from sparsact.kernels import subsets_in_order
from sparsact.learners.low_degree.compact_sums import Moments
from sparsact.learners.low_degree.distinct_points import (
    DistinctPoints,
    SymmetricDifferences,
    correlations,
    small_correlations,
)
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.points import Points, pack
from sparsact.statistics.exact_sum import ExactSum
from sparsact.statistics.statistic import Batch


def listed(family: Family) -> SymmetricDifferences:
    return SymmetricDifferences.of(Family(family.n, family.masks, None))


@pytest.mark.grid
@pytest.mark.parametrize(("n", "degree"), [(0, 2), (5, 0), (4, 1), (3, 2), (9, 3), (70, 2), (131, 1)])
def test_rank_and_search_agree(n, degree):
    family = Family.full(n, degree)
    by_rank, by_search = SymmetricDifferences.of(family), listed(family)
    assert by_rank.position is None
    assert by_search.position is not None
    np.testing.assert_array_equal(by_rank.masks, by_search.masks)
    moments = np.random.default_rng([n, degree]).normal(size=len(by_rank.masks))
    for part in (family, Family.full(n, min(degree, 1))):
        np.testing.assert_array_equal(by_rank.gram(part, moments), by_search.gram(part, moments))


def test_a_family_without_small_subsets_is_searched():
    assert SymmetricDifferences.of(Family.full(6, 3, min_degree=2)).position is not None
    assert SymmetricDifferences.of(Family.explicit(6, [(0,), (1, 2)])).position is not None


def test_a_stored_span_must_be_that_of_its_masks():
    family = Family.full(6, 2)
    moments = Moments(family, 1)
    rng = np.random.default_rng(3)
    points = Points.from_codes(rng.integers(0, 64, (17, 1), dtype=np.uint64), 6)
    moments.add(Batch(points, np.ones((17, 1))))
    state, arrays = moments.state()
    twin = moments.empty()
    twin.restore(state, arrays)
    np.testing.assert_array_equal(twin.gram(family), moments.gram(family))
    arrays["masks"] = arrays["masks"][:-1]
    with pytest.raises(ValueError, match=r"not all subsets|where there are"):
        moments.empty().restore(state, arrays)


@pytest.mark.parametrize(("n", "size"), [(9, 3), (8, 8), (67, 2)])
def test_sums_of_many_rows_match_each_subset(n, size):
    """A pass for several subsets gives the sums that a pass for each gives."""
    rng = np.random.default_rng(n)
    bits = rng.integers(0, 2, (5003, n))
    codes = pack(bits, "bits").codes()
    values = ExactSum.of(rng.normal(size=(2, 5003)) * 10.0 ** rng.integers(-20, 20, (2, 5003)))
    sums = small_correlations(codes, n, values, size)
    each = correlations(Points.from_codes(codes, n), values, subsets_in_order(n, size))
    assert len(values.limbs) > 2
    np.testing.assert_array_equal(sums.to_float(), each.to_float())


def test_rows_that_were_taken_away_do_not_part_columns():
    bits = np.random.default_rng(6).integers(0, 2, (37, 5))
    bits[:, 3] = 1 - bits[:, 1]
    other = bits[:9].copy()
    other[:, 3] = other[:, 1]
    points = DistinctPoints(5, 1)
    for some, sign in ((bits, 1), (other, 1), (other, -1)):
        points.add(Batch(pack(some, "bits"), np.ones((len(some), 1))), sign)
    assert points.first_alike().tolist() == [0, 1, 2, 1, 4]
