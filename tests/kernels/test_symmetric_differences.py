from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.hypercube import n_subsets, subset_masks
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def increase(masks: np.ndarray) -> bool:
    """Each mask is a larger number than the one before: its highest word that differs is."""
    before, after = masks[:-1, ::-1], masks[1:, ::-1]
    highest = (before != after).argmax(axis=1)[:, None]
    return bool((np.take_along_axis(before, highest, 1) < np.take_along_axis(after, highest, 1)).all())


def check(masks: np.ndarray) -> np.ndarray:
    before = masks.copy()
    unique, position = kernels.symmetric_differences(masks)
    np.testing.assert_array_equal(masks, before)
    assert (unique.dtype, position.dtype) == (np.uint64, np.int32)
    expected_position = np.empty_like(position)
    expected = reference.symmetric_differences(masks, expected_position)
    np.testing.assert_array_equal(unique, expected)
    np.testing.assert_array_equal(position, expected_position)
    np.testing.assert_array_equal(unique[position], masks[:, None] ^ masks[None])
    assert increase(unique)
    return unique


@properties
@given(
    W=st.integers(1, 4),
    D=st.integers(0, 50),
    mask=st.sampled_from([7, 2**12 - 1, 2**64 - 1]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_difference_once_in_numeric_order(W, D, mask, seed):
    rng = np.random.default_rng(seed)
    masks = np.unique(rng.integers(0, 2**64, size=(D, W), dtype=np.uint64) & np.uint64(mask), axis=0)
    rng.shuffle(masks)
    check(masks)


@pytest.mark.parametrize(
    ("n", "degree"), [(5, 3), (23, 2), (66, 1), pytest.param(70, 2, marks=pytest.mark.slow), (131, 1), (0, 0)]
)
def test_differences_of_small_subsets_are_small_subsets(n, degree):
    unique = check(subset_masks(n, degree))
    assert len(unique) == n_subsets(n, 2 * degree)


def test_an_empty_family_has_no_difference():
    unique, position = kernels.symmetric_differences(np.zeros((0, 2), dtype=np.uint64))
    assert unique.shape == (0, 2)
    assert position.shape == (0, 0)
