from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparsact import kernels
from sparsact.statistics.exact_sum import ExactSum

pytestmark = pytest.mark.usefixtures("kernels_in_use")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

EDGES = [0.0, 1.0, 2.0**32, 2.0**-32, 5e-324, 2.2e-308, 1e300, 1e-300, 2.0**53 - 1]
EDGES += [-edge for edge in EDGES]
doubles = st.sampled_from(EDGES) | st.floats(-1e300, 1e300) | st.integers(-5, 5).map(float)
lists = st.lists(doubles, min_size=0, max_size=23)
triples = st.lists(st.tuples(doubles, doubles, doubles), min_size=0, max_size=23)
pairs = st.lists(st.tuples(doubles, doubles), min_size=0, max_size=23)


def exact(values):
    return sum((Fraction(float(value)) for value in values), Fraction(0))


def one_sum(values):
    """All values added to a single entry."""
    sums = ExactSum.zeros((1,))
    sums.add(np.array(values, dtype=np.float64), None, np.zeros(len(values), dtype=np.uint64))
    return sums


def canonical(sums):
    sums = sums.copy()
    sums.normalize()
    return sums.base, sums.limbs.shape, sums.limbs.tobytes()


def same(a, b):
    assert canonical(a) == canonical(b)


@properties
@given(lists)
def test_a_sum_is_the_rational_sum(values):
    assert one_sum(values).to_fractions() == [exact(values)]


@properties
@given(triples)
def test_a_sum_of_triple_products_is_the_rational_one(factors):
    a, b, c = np.array(factors, dtype=np.float64).reshape(-1, 3).T.copy()
    sums = ExactSum.zeros((1,))
    sums.add(a, b, np.zeros(len(a), dtype=np.uint64), c)
    assert sums.to_fractions() == [sum((Fraction(x) * Fraction(y) * Fraction(z) for x, y, z in factors), Fraction(0))]


@properties
@given(pairs, doubles)
def test_multiples_of_sums_are_rational(both, factor):
    a, b = np.array(both, dtype=np.float64).reshape(-1, 2).T.copy()
    sums = ExactSum.of(np.stack([a, b]))
    sums.add_multiples(ExactSum.of(b), np.array([[factor], [-1.0]]))
    expected = [Fraction(x) + Fraction(factor) * Fraction(y) for x, y in both] + [Fraction(0)] * len(both)
    assert sums.to_fractions() == expected


@properties
@given(lists, st.sampled_from([8388593, 8388587]))
def test_residues_of_sums(values, prime):
    total = exact(values)
    expected = total.numerator * pow(total.denominator, -1, prime) % prime
    assert one_sum(values).modulo(prime).tolist() == [expected]


@properties
@given(pairs)
def test_a_sum_of_products_is_the_rational_one(both):
    a, b = np.array(both, dtype=np.float64).reshape(-1, 2).T.copy()
    sums = ExactSum.zeros((1,))
    sums.add(a, b, np.zeros(len(a), dtype=np.uint64))
    expected = sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))
    assert sums.to_fractions() == [expected]


@properties
@given(pairs)
def test_each_entry_keeps_to_itself(both):
    a, b = np.array(both, dtype=np.float64).reshape(-1, 2).T.copy()
    before = a.copy(), b.copy()
    fractions = ExactSum.of(a, b).to_fractions()
    assert fractions == [Fraction(x) * Fraction(y) for x, y in both]
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


@properties
@given(lists, st.randoms(use_true_random=False), st.integers(0, 23))
def test_order_and_split_do_not_show(values, random, cut):
    whole = one_sum(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    first, second = one_sum(shuffled[:cut]), one_sum(shuffled[cut:])
    second.merge(first)
    same(second, whole)
    streamed = ExactSum.zeros((1,))
    for value in shuffled:
        streamed.add(np.array([value]), None, np.zeros(1, dtype=np.uint64))
    same(streamed, whole)


@properties
@given(lists, lists)
def test_subtraction_gives_back(values, others):
    sums = one_sum(values)
    sums.merge(one_sum(others))
    sums.merge(one_sum(others), -1)
    same(sums, one_sum(values))
    negated = ExactSum.zeros((1,))
    negated.merge(one_sum(values), -1)
    same(negated, one_sum(values).times(-1))


@properties
@given(st.lists(doubles, min_size=1, max_size=9))
def test_what_cancels_is_gone(values):
    sums = one_sum(values + [-value for value in values])
    assert not sums.nonzero().any()
    assert sums.to_fractions() == [0]
    assert canonical(sums) == canonical(ExactSum.zeros((1,)))
    assert sums.to_float().tolist() == [0.0]


@properties
@given(st.lists(st.floats(-1e290, 1e290, allow_subnormal=False), min_size=1, max_size=29))
def test_floats_are_within_two_units_in_the_last_place(values):
    total = exact(values)
    got = one_sum(values).to_float()[0]
    assert abs(Fraction(float(got)) - total) <= 2 * Fraction(math.ulp(float(total)))


@properties
@given(st.lists(st.floats(-1e200, 1e200), min_size=2, max_size=7))
def test_a_float_does_not_depend_on_its_neighbours(values):
    together = ExactSum.of(np.array(values))
    alone = [one_sum([value]).to_float()[0] for value in values]
    np.testing.assert_array_equal(together.to_float(), alone)
    np.testing.assert_array_equal(together.to_float(), values)  # a single double comes back as it was


@properties
@given(arrays(np.float64, (3, 5), elements=doubles), st.sampled_from([1, -1]))
def test_normal_form(values, sign):
    """All limbs but the top in [0, 2**32), the top in [-2**32, 2**32), no empty end; and the value is kept."""
    sums = ExactSum.of(values).times(sign)
    expected = [sign * Fraction(value) for value in values.ravel().tolist()]
    sums.normalize()
    if not len(sums.limbs):
        assert not values.any()
        return
    assert sums.to_fractions() == expected
    assert (sums.limbs[:-1] >= 0).all()
    assert (sums.limbs[:-1] < 2**32).all()
    assert (sums.limbs[-1] >= -(2**32)).all()
    assert (sums.limbs[-1] < 2**32).all()
    assert sums.limbs[0].any()
    assert sums.limbs[-1].any()


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_normal_form_is_one_whatever_the_limbs_were(k):
    """The same values spelled with other carries, and from another base."""
    for value in (2**32, -(2**32), 2**64, -(2**64), 2**32 - 1, 1 - 2**32, -1, 1):
        places = [ExactSum(0, np.array([[value >> 32 * j & 0xFFFFFFFF] for j in range(k)] + [[value >> 32 * k]]))]
        if abs(value) < 2**62:
            places.append(ExactSum(0, np.array([[value]])))
        places.append(one_sum([float(value)]))
        for other in places[1:]:
            same(places[0], other)


def test_many_more_rows_than_a_limb_can_count():
    """2**80 copies of the rows by doubling: carries come in time."""
    values = np.array([1e300, -3.5e-310, 7.25, 2.0**53 - 1, -1e22, 0.0])
    sums = ExactSum.of(values)
    for _ in range(80):
        sums.merge(sums.copy())
    assert sums.to_fractions() == [Fraction(value) * 2**80 for value in values.tolist()]
    for _ in range(80):
        sums.merge(sums)
    assert sums.to_fractions() == [Fraction(value) * 2**160 for value in values.tolist()]


@grid(spare=[0, 1, 2**33, 2**34 - 1, 2**34], large=[1e30, 1e-30, -1e300, 5e-324])
def test_room_is_made_before_limbs(spare, large):
    """The state after 2**29 rows: the bound is nearly used up when a batch of another magnitude arrives."""
    values = np.array([1.5, -(2.0**31)])
    for join in ("add", "merge"):
        sums = ExactSum.of(values)
        sums._bound = (1 << 62) - spare
        more = np.array([large, 3.0])
        if join == "add":
            sums.add(more)
        else:
            sums.merge(ExactSum.of(more))
        assert sums.to_fractions() == [
            Fraction(x) + Fraction(y) for x, y in zip(values.tolist(), more.tolist(), strict=True)
        ]


def test_limbs_near_the_limit_are_carried():
    """Limbs of 2**61, the most that the bound allows after a merge, do not overflow."""
    limbs = np.array([[2**61, -(2**61)], [2**61, -(2**61)]])
    sums = ExactSum(0, limbs, bound=2**61)
    value = 2**61 + 2**93
    for times in (2, 4, 8):
        sums.merge(sums.copy())
        assert sums.to_fractions() == [times * value, -times * value]


def test_a_batch_beyond_int64_is_refused():
    sums = ExactSum.zeros((1,))
    with pytest.raises(OverflowError, match="smaller batches"):
        sums._make_room(1 << 63)


@properties
@given(arrays(np.float64, (2, 7), elements=doubles), st.permutations(range(7)), st.integers(1, 6))
def test_groups_of_the_last_axis(values, order, cut):
    sums = ExactSum.of(values)
    grouped = sums.grouped(np.array(order), np.array([0, cut]))
    rows = values[:, order].tolist()
    expected = [exact(part) for row in rows for part in (row[:cut], row[cut:])]
    assert grouped.to_fractions() == expected
    assert grouped.shape == (2, 2)


def test_no_groups():
    assert ExactSum.zeros((3, 0)).grouped(np.zeros(0, np.intp), np.zeros(0, np.intp)).shape == (3, 0)


@properties
@given(st.lists(arrays(np.float64, st.tuples(st.just(2), st.integers(0, 4)), elements=doubles), min_size=1, max_size=5))
def test_parts_one_after_another(parts):
    joined = ExactSum.concatenated([ExactSum.of(part) for part in parts])
    same(joined, ExactSum.of(np.concatenate(parts, axis=1)))


@properties
@given(arrays(np.float64, (2, 6), elements=doubles), st.permutations(range(6)), st.integers(0, 6))
def test_take_and_scatter(values, order, count):
    sums, index = ExactSum.of(values), np.array(order[:count], dtype=np.intp)
    same(sums.take(index), ExactSum.of(np.ascontiguousarray(values[:, index])))
    same(sums.take(slice(count)), ExactSum.of(np.ascontiguousarray(values[:, :count])))
    spread = np.zeros((2, 11))
    spread[:, index] = values[:, :count]
    same(sums.take(slice(count)).scattered(index, 11), ExactSum.of(spread))


@properties
@given(arrays(np.float64, (2, 6), elements=doubles), st.sampled_from([1, -1]), st.integers(0, 6))
def test_what_is_derived_shares_nothing(values, sign, count):
    """Carrying in a part, or in a sum made from another, does not touch the whole."""
    whole = ExactSum.of(values).times(sign)
    whole.merge(ExactSum.of(values[:, ::-1].copy()), -sign)
    expected = whole.copy().to_fractions()
    parts = [whole.take(slice(count)), whole.take(np.arange(count)), whole.copy(), whole.times(1), whole.times(-1)]
    parts += [whole.scattered(np.arange(6), 7), ExactSum.concatenated([whole])]
    for part in parts:
        part.to_float()
        part.merge(part.copy())
        part.to_float()
    assert whole.to_fractions() == expected
    whole.nonzero()
    assert whole.to_fractions() == expected


def test_a_part_that_is_the_whole_is_still_a_copy():
    """A top limb that only holds signs is folded into the one below: in the part, not in the whole."""
    whole = ExactSum(0, np.array([[7, 5], [-1, -1]]))
    expected = whole.to_fractions()
    whole.take(slice(2)).to_float()
    assert whole.to_fractions() == expected


@properties
@given(st.integers(0, 4).flatmap(lambda n: arrays(np.float64, (3, 2**n), elements=doubles)), st.integers(1, 3))
def test_the_transform_is_exact(values, n_threads):
    sums = ExactSum.of(values)
    before = canonical(sums)
    transformed = sums.walsh_hadamard(n_threads=n_threads)
    length = values.shape[1]
    signs = [[(-1) ** (S & p).bit_count() for p in range(length)] for S in range(length)]
    expected = [exact(np.multiply(row, sign)) for row in values for sign in signs]
    assert transformed.to_fractions() == expected
    assert canonical(sums) == before


@properties
@given(arrays(np.float64, 6, elements=doubles))
def test_a_copy_is_independent(values):
    sums = ExactSum.of(values)
    twin, before = sums.copy(), canonical(sums)
    twin.merge(ExactSum.of(np.full(6, 3e7)))
    assert canonical(sums) == before


@given(pairs, st.lists(st.integers(0, 3), min_size=23, max_size=23))
def test_native_sums_are_the_reference_sums(both, places):
    if kernels.dispatch.native is None:
        pytest.skip("the native kernels are not built here")
    a, b = np.array(both, dtype=np.float64).reshape(-1, 2).T.copy()
    index = np.array(places[: len(a)], dtype=np.uint64)
    results = []
    for name in ("reference", "native"):
        with kernels.using(name):
            sums = ExactSum.zeros((4,))
            sums.add(a, b, index)
            sums.add(a, None, index)
        results.append(sums)
    same(*results)
