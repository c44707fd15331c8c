"""Theorem 4.1 in practice: predictions of misses against enumeration."""

from itertools import combinations

import numpy as np
import pytest

from sparsact_papers.paper_b.theorem_4_1_practice import MISSES, RIVALS, measure, misses, plug_in, rivals, unbiased

PLANE = {"k": 2, "ambient": 5, "n_directions": 6, "width": 0.5, "fewest": 16, "most": 256, "large": 4096, "seed": 1}
SIZES = {"k": 3, "ambient": 7, "centres": 5, "rows": 400, "n_test": 90, "seed": 1}


@pytest.mark.parametrize("m", [1, 2, 4, 6])
def test_unbiased_is_the_mean_over_all_choices(m):
    bucket = np.repeat([0, 1, 2], [4, 2, 1])
    missed = [
        bucket[one] not in bucket[list(rest)]
        for one in range(7)
        for rest in combinations([i for i in range(7) if i != one], m)
    ]
    assert unbiased(np.array([4, 2, 1]), m) == pytest.approx(np.mean(missed))


def test_unbiased_has_the_mean_of_the_sum_and_the_plug_in_has_not():
    p, m, n_rows = np.array([0.5, 0.3, 0.15, 0.05]), 20, 40
    draws = np.random.default_rng(3).multinomial(n_rows, p, size=4000)
    found = np.array([[unbiased(c[c > 0], m), plug_in(c[c > 0], m)] for c in draws])
    off = (found.mean(axis=0) - p @ (1 - p) ** m) / (found.std(axis=0) / np.sqrt(len(draws)))
    assert abs(off[0]) < 5  # fails with probability below 1e-6
    assert abs(off[1]) > 10


def test_plug_in_by_hand():
    assert plug_in(np.array([3, 1]), 2) == pytest.approx(0.75 / 16 + 0.25 * 9 / 16)


def test_misses_fall_and_are_predicted():
    values = measure(part=MISSES, **PLANE)
    assert values == misses(**PLANE)
    assert values["samples"] == [16, 32, 64, 128, 256]
    assert values["misses"] == sorted(values["misses"], reverse=True)
    assert values["misses"][0] == pytest.approx(values["unbiased"][0], abs=0.15)
    assert values["misses"][-1] == pytest.approx(values["unbiased"][-1], abs=0.05)
    assert values["unbiased"] == sorted(values["unbiased"], reverse=True)


def test_rivals_are_deterministic_and_see_the_same_points():
    values = measure(part=RIVALS, **SIZES)
    assert values == rivals(**SIZES)
    other = rivals(**SIZES | {"rows": 800})
    assert other["deviation"] == values["deviation"]
    assert other["nearest"] != values["nearest"]
    assert values["recommended"] < values["deviation"]
