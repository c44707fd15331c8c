"""Lifts: products of coordinates by definition, at the edges of a word, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact.lift import Lift


@pytest.mark.parametrize("m", [1, 2, np.int64(5)])
def test_the_quadratic_lift(m):
    Y, lift = points(int(m)), Lift.quadratic(m)
    X = lift(Y).reshape(-1, m, m)
    assert (lift.n, X.dtype, type(lift.m)) == (m * m, np.int8, int)
    for y, x in zip(Y, X, strict=True):
        assert np.array_equal(x, np.where(np.eye(m, dtype=bool), y, np.outer(y, y)))


def test_lifts_across_words_of_any_subsets():
    y = np.where(np.arange(65) == 64, -1, 1)[None]
    assert Lift([(64,), (0, 64), (), (63,), (64,)], 65)(y).tolist() == [[-1, -1, 1, 1, -1]]
    assert Lift([(0,)], 2)(np.zeros((0, 2))).shape == (0, 1)


def test_samples_are_lifted_uniform_points():
    X = Lift.quadratic(2).sample(4000, rng=np.random.default_rng(0))
    assert np.array_equal(X[:, 1], X[:, 0] * X[:, 3])
    # Each of 3 means has a standard deviation of 0.016: beyond 5 of these with probability below 1e-5.
    assert np.abs(X[:, [0, 1, 3]].mean(axis=0)).max() < 0.08


@pytest.mark.parametrize(
    ("subsets", "m", "complaint"),
    [
        ([(0,)], 0, "1 or more"),
        ([(0,)], -1, "1 or more"),
        ([], 3, "at least one subset"),
        ([(3,)], 3, "names coordinate 3"),
        ([(1, 1)], 3, "twice"),
    ],
)
def test_strange_lifts_are_refused(subsets, m, complaint):
    with pytest.raises(ValueError, match=complaint):
        Lift(subsets, m)


def test_strange_sizes_and_points_are_refused():
    with pytest.raises(TypeError):
        Lift([(0,)], 2.7)
    with pytest.raises(ValueError, match="1 or more"):
        Lift.quadratic(0)
    with pytest.raises(ValueError, match="2 columns"):
        Lift.quadratic(2)([[1, 1, 1]])
    with pytest.raises(ValueError, match="holds 0"):
        Lift.quadratic(2)([[1, 0]])
