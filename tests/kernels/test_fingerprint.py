"""A fingerprint tells any change of memory, and its stripes together read all of it."""

from __future__ import annotations

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact.kernels.fingerprint import fingerprint

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def places(*arrays):
    return [(array.ctypes.data, array.nbytes) for array in arrays]


@properties
@given(
    sizes=st.tuples(st.integers(0, 9000), st.integers(1, 300)),
    place=st.integers(0, 2**31),
    bit=st.integers(0, 7),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_single_bit_is_found_by_all_and_within_a_round(sizes, place, bit, seed):
    draw = np.random.default_rng(seed)
    first, second = (draw.integers(0, 256, size, dtype=np.uint8) for size in sizes)
    found = fingerprint(places(first, second))
    assert found.all()
    assert all(found.next() for _ in range(found.stripes))
    changed = first if place % 2 and len(first) else second
    changed[place % len(changed)] ^= 1 << bit
    assert not found.all()
    assert not all(found.next() for _ in range(found.stripes))
    changed[place % len(changed)] ^= 1 << bit
    assert found.all()


@grid(
    change=[np.negative, lambda a: 0 * a, lambda a: a[::-1].copy(), lambda a: a[:, ::-1].copy()],
    dtype=[np.float32, np.float64],
)
def test_changes_of_every_number_do_not_cancel(change, dtype):
    """Negation turns one bit in each number: sums of products with odd numbers would not see it."""
    table = np.random.default_rng(3).normal(size=(128, 256)).astype(dtype)
    found = fingerprint(places(table))
    table[:] = change(table)
    assert not any(found.next() for _ in range(found.stripes))


def test_a_column_is_found_at_once_and_a_row_before_the_end_of_a_round():
    table = np.random.default_rng(4).normal(size=(512, 1024)).astype(np.float32)
    for where, latest in [(np.s_[:, 77], 1), (np.s_[7], 511 - 4)]:  # of 511 stripes four hold a kilobyte of the row
        found = fingerprint(places(table))
        assert found.stripes == 511
        table[where] += 1
        assert [found.next() for _ in range(found.stripes)].index(False) <= latest
