"""Cells, Rows and Moments hold the same exact sums: whatever is asked of them, the answers agree to the bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from explicit import monomials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact.learners.low_degree.compact_sums import Cells, Moments, distinct_points_of
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.points import pack
from sparsact.statistics.statistic import Batch

pytestmark = pytest.mark.usefixtures("kernels_in_use")
properties = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
cases = {
    "n": st.integers(1, 7),
    "m": st.integers(0, 90),
    "T": st.integers(1, 3),
    "degree": st.integers(0, 8),
    "min_degree": st.integers(0, 3),
    "weighted": st.booleans(),
    "seed": st.integers(0, 999),
}


def sample(rng, m, n, T, *, weighted=True):
    y = rng.normal(size=(m, T)) * 10.0 ** rng.integers(-40, 40, (m, T))
    weights = rng.random(m) * 2.0 ** rng.integers(-30, 30, m) if weighted else None
    return rng.integers(0, 2, (m, n)), y, weights


def filled(statistic, bits, y, weights):
    statistic.add(Batch(pack(bits, "bits"), y, weights))
    return statistic


def forms(family, T):
    made = [DistinctPoints(family.n, T), Moments(family, T)]
    return made if family.n > 20 else [Cells(family.n, T), *made]


def answers(statistic, family):
    return (
        statistic.totals.n_rows,
        statistic.weight,
        statistic.gram(family),
        statistic.correlations(family),
        statistic.totals.squares_about(np.full(statistic.n_targets, 0.3)),
    )


def same(a, b, family):
    for mine, theirs in zip(answers(a, family), answers(b, family), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@properties
@given(**cases)
def test_all_forms_agree_to_the_bit(n, m, T, degree, min_degree, weighted, seed):
    data = sample(np.random.default_rng(seed), m, n, T, weighted=weighted)
    family = Family.full(n, degree, min_degree)
    first, *others = [filled(form, *data) for form in forms(family, T)]
    for other in others:
        same(first, other, family)
    for fewer in range(degree):
        for other in others:
            same(first, other, Family.full(n, fewer, min_degree))


@pytest.mark.parametrize(("n", "m", "n_subsets"), [(65, 91, 23), (130, 47, 31), (70, 3, 11)])
def test_rows_and_moments_agree_beyond_a_word(n, m, n_subsets):
    rng = np.random.default_rng(n)
    data = sample(rng, m, n, 2)
    data[0][m // 2 :] = data[0][rng.integers(0, m // 2 + 1, m - m // 2)]  # repeated rows
    subsets = [rng.choice(n, size, replace=False) for size in rng.integers(1, 5, n_subsets)]
    for family in (Family.full(n, 1), Family.explicit(n, [*subsets, (0, n - 1)])):
        same(*(filled(form, *data) for form in forms(family, 2)), family)


@pytest.mark.grid
@properties
@given(**cases)
def test_the_answers_are_the_rational_ones(n, m, T, degree, min_degree, weighted, seed):
    """Gram and correlations by brute force in fractions, to 2 units in the last place."""
    bits, y, weights = sample(np.random.default_rng(seed), min(m, 11), n, T, weighted=weighted)
    family = Family.full(n, min(degree, 3), min_degree)
    characters = monomials(1 - 2 * bits, [(), *family.subsets]).astype(int).tolist()
    ones = np.ones(len(bits)) if weights is None else weights
    w = [Fraction(value) for value in ones.tolist()]
    size = len(family) + 1
    gram = [
        [sum(wi * c[a] * c[b] for wi, c in zip(w, characters, strict=True)) for b in range(size)] for a in range(size)
    ]
    sums = [
        [sum(wi * Fraction(yi) * c[a] for wi, yi, c in zip(w, column, characters, strict=True)) for a in range(size)]
        for column in y.T.tolist()
    ]
    for form in forms(family, T):
        statistic = filled(form, bits, y, weights)
        np.testing.assert_array_max_ulp(statistic.gram(family), np.array(gram, dtype=float).reshape(size, size), 2)
        np.testing.assert_array_max_ulp(statistic.correlations(family), np.array(sums, dtype=float).reshape(T, size), 2)


@properties
@given(st.integers(1, 40), st.integers(0, 4), st.integers(1, 3), st.integers(0, 999))
def test_merge_adds_and_takes_away(m, n_parts, T, seed):
    rng = np.random.default_rng(seed)
    bits, y, weights = sample(rng, m, 5, T)
    family = Family.full(5, 3)
    part = rng.integers(0, n_parts + 1, m)
    for make in (lambda: Cells(5, T), lambda: DistinctPoints(5, T), lambda: Moments(family, T)):
        whole, merged = filled(make(), bits, y, weights), make()
        for k in rng.permutation(n_parts + 1):
            merged.merge(filled(make(), bits[part == k], y[part == k], weights[part == k]))
        same(merged, whole, family)
        gone = filled(make(), bits[part == 0], y[part == 0], weights[part == 0])
        merged.merge(gone, -1)
        whole.add(Batch(pack(bits[part == 0], "bits"), y[part == 0], weights[part == 0]), -1)
        kept = filled(make(), bits[part != 0], y[part != 0], weights[part != 0])
        same(merged, kept, family)
        same(whole, kept, family)


def test_forms_turn_into_each_other():
    data = sample(np.random.default_rng(8), 61, 4, 2)
    family = Family.full(4, 2)
    by_rows = filled(DistinctPoints(4, 2), *data)
    cells, sums = Cells(4, 2), Moments(family, 2)
    cells.merge(by_rows)
    sums.merge(by_rows)
    for other in (cells, sums, cells.as_points()):
        same(by_rows, other, family)
    assert len(cells.as_points().codes) <= 16
    cells.merge(filled(DistinctPoints(4, 2), *data))
    twice = filled(filled(Cells(4, 2), *data), *data)
    same(cells, twice, family)


def test_rescaled_sums_are_read_merged_written_and_rescaled_again():
    """They equal sums of the intended targets, computed by fractions of two, whatever the form."""
    rng = np.random.default_rng(12)
    (bits, _, weights), family = sample(rng, 43, 4, 2), Family.full(4, 2)
    y, origin, second = (rng.integers(-99, 99, shape) / 8 for shape in ((43, 2), 2, 2))
    once, twice = y - origin, y - origin - second
    for empty in forms(family, 2):
        view = filled(empty.copy(), bits, y, weights).rescaled(0, origin)
        same(view, filled(empty.copy(), bits, once, weights), family)
        same(view.rescaled(0, second), filled(empty.copy(), bits, twice, weights), family)
        again = empty.copy()
        again.restore(*view.state())
        same(again, view, family)
        again.merge(view, -1)
        same(again, filled(empty.copy(), *(part[:0] for part in (bits, y, weights))), family)


def test_a_copy_is_independent():
    data, more = sample(np.random.default_rng(9), 41, 5, 1), sample(np.random.default_rng(10), 7, 5, 1)
    family = Family.full(5, 2)
    for form in forms(family, 1):
        original = filled(form, *data)
        twin = original.copy()
        same(twin, original, family)
        filled(twin, *more)
        same(original, filled(original.empty(), *data), family)
        filled(original, *more)
        same(twin, original, family)


def test_what_is_given_is_left_unchanged():
    bits, y, weights = sample(np.random.default_rng(11), 37, 5, 2)
    points, family = pack(bits, "bits"), Family.full(5, 2)
    before = [array.copy() for array in (points.columns, y, weights)]
    for form in forms(family, 2):
        form.add(Batch(points, y, weights))
        form.gram(family)
        form.correlations(family)
        form.add(Batch(points, y, weights), -1)
    for array, copy in zip((points.columns, y, weights), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_rows_join_repeated_points():
    bits = np.repeat(np.eye(3, dtype=int), [5, 1, 4], axis=0)
    statistic = filled(DistinctPoints(3, 1), bits, np.arange(10.0)[:, None], None)
    statistic.deduplicate()
    np.testing.assert_array_equal(statistic.codes, [[1], [2], [4]])
    np.testing.assert_array_equal(statistic.weights.to_float(), [5, 1, 4])
    np.testing.assert_array_equal(statistic.sums.to_float(), [[10, 5, 30]])
    assert statistic.totals.n_rows == 10


def test_forgotten_points_leave_no_trace():
    bits, y, weights = sample(np.random.default_rng(12), 29, 4, 1)
    for statistic in (DistinctPoints(4, 1), Cells(4, 1)):
        filled(statistic, bits, y, weights)
        statistic.add(Batch(pack(bits, "bits"), y, weights), -1)
        left = distinct_points_of(statistic)
        left.deduplicate()
        assert len(left.codes) == 0
        assert left.totals.n_rows == 0
        assert left.weight == 0


def test_moments_digest_when_enough_rows_wait():
    family = Family.full(6, 2)
    bits, y, weights = sample(np.random.default_rng(13), 83, 6, 2)
    sums = Moments(family, 2, max_waiting=16)
    for start in range(0, 83, 7):
        part = slice(start, start + 7)
        filled(sums, bits[part], y[part], weights[part])
        assert sums._waiting.totals.n_rows < 16
    same(sums, filled(DistinctPoints(6, 2), bits, y, weights), family)
