from __future__ import annotations

import numpy as np
import pytest

from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.symmetric_differences import Differences, Listed, Ranked
from sparsact.learners.points import Points


def listed(family: Family) -> Differences:
    return Differences.of(Family(family.n, family.masks, None))


@pytest.mark.parametrize(("n", "degree"), [(0, 2), (5, 0), (4, 1), (3, 2), (9, 3), (70, 2), (131, 1)])
def test_rank_and_search_agree(n, degree):
    family = Family.full(n, degree)
    by_rank, by_search = Differences.of(family), listed(family)
    assert (type(by_rank), type(by_search)) == (Ranked, Listed)
    np.testing.assert_array_equal(by_rank.masks, by_search.masks)
    assert by_rank.nbytes < by_search.nbytes
    moments = np.random.default_rng([n, degree]).normal(size=len(by_rank.masks))
    for part in (family, Family.full(n, min(degree, 1))):
        np.testing.assert_array_equal(by_rank.gram(part, moments), by_search.gram(part, moments))


def test_a_family_without_small_subsets_is_searched():
    assert isinstance(Differences.of(Family.full(6, 3, min_degree=2)), Listed)
    assert isinstance(Differences.of(Family.listed(6, [(0,), (1, 2)])), Listed)


def test_a_stored_span_must_be_that_of_its_masks():
    family = Family.full(6, 2)
    moments = Moments(family, 1)
    rng = np.random.default_rng(3)
    moments.update(Points.from_codes(rng.integers(0, 64, (17, 1), dtype=np.uint64), 6), np.ones((17, 1)), None)
    arrays: dict[str, np.ndarray] = {}
    state = moments.state("s", arrays)
    twin = Moments.from_state(state, "s", 6, 1, arrays)
    np.testing.assert_array_equal(twin.gram(family), moments.gram(family))
    arrays["s.masks"] = arrays["s.masks"][:-1]
    with pytest.raises(ValueError, match=r"not all subsets|more than memory"):
        Moments.from_state(state, "s", 6, 1, arrays)
