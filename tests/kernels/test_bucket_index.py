"""The index of buckets by their keys."""

from __future__ import annotations

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_index import BucketIndex

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
words = st.one_of(st.integers(0, 40), st.sampled_from([2**64 - 1, 2**63, 2**64 - 2]), st.integers(0, 2**64 - 1))


@properties
@given(keys=st.lists(words, max_size=120), cuts=st.lists(st.integers(0, 120), max_size=4), absent=st.lists(words))
@example(keys=list(range(100)), cuts=[50], absent=[100, 2**64 - 1])  # one home for all of them
@example(keys=[2**64 - 1 - i for i in range(100)], cuts=[], absent=[0])  # the last slot, and round to the first
def test_the_index_numbers_keys_as_a_dict_does(keys, cuts, absent):
    numbers: dict[int, int] = {}
    expected = [numbers.setdefault(key, len(numbers)) for key in keys]
    index = BucketIndex()
    parts = np.split(np.array(keys, dtype=np.uint64), sorted(cuts))
    assert np.concatenate([index.insert(part) for part in parts]).tolist() == expected
    assert len(index) == len(numbers)
    assert index.keys.tolist() == list(numbers)
    for again in (index, BucketIndex(index.keys)):
        asked = np.array([*keys, *absent], dtype=np.uint64)
        assert again.find(asked).tolist() == [numbers.get(int(key), -1) for key in asked]


def test_the_index_grows_and_keeps_the_shape_of_what_is_asked():
    rng = np.random.default_rng(11)
    index, keys = BucketIndex(), rng.integers(0, 5_000, (31, 700), dtype=np.uint64) << np.uint64(50)
    ids = index.insert(keys)
    assert ids.shape == keys.shape
    np.testing.assert_array_equal(index.keys[ids], keys)
    np.testing.assert_array_equal(index.find(keys), ids)
    assert 2 * len(index) <= len(index.slots)


def test_keys_that_are_known_need_no_room():
    keys = np.arange(1000, dtype=np.uint64) << np.uint64(50)
    index = BucketIndex(keys)
    slots = index.slots
    np.testing.assert_array_equal(index.insert(np.tile(keys, 70)), np.tile(np.arange(1000), 70))
    assert index.slots is slots


@grid(n_slots=[1, 2, 16])
def test_slots_from_a_bad_file_end_every_search(n_slots):
    rng = np.random.default_rng(n_slots)
    slots = rng.integers(0, 2**64, (n_slots, 2), dtype=np.uint64)
    slots[0] = 5, 3
    slots.flags.writeable = False
    keys = np.concatenate([slots[:, 0], rng.integers(0, 2**64, 20, dtype=np.uint64)])
    ids = np.empty(len(keys), dtype=np.int32)
    dispatch.chosen.find(slots, keys, ids)
    assert ids[0] == 3
    known = {int(key): int(number) if number < 2**31 else -1 for key, number in slots}
    assert ids.tolist() == [known.get(int(key), -1) for key in keys]
