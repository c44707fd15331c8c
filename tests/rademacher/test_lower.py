"""Search for networks that correlate with signs: legal members of the class, near the best where that is known."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact.rademacher import correlating_network, exact_complexity, lower_complexity

CUBE = points(3).astype(float)


@pytest.mark.grid
@pytest.mark.parametrize(("m", "n", "s", "k", "W", "B"), [(30, 4, 5, 1, 1.0, 0.5), (23, 6, 7, 3, 0.2, 3.0)])
def test_what_is_found_is_in_the_class(m, n, s, k, W, B):
    rng = np.random.default_rng(0)
    for X in (rng.choice([-1.0, 1.0], size=(m, n)), rng.normal(size=(m, n))):
        net = correlating_network(X, rng.normal(size=m), s, k, W=W, B=B, n_rounds=3, rng=rng)
        assert net.s == s
        assert net.n_active(X).max() <= k
        assert net.scale().W <= W
        assert net.scale().B <= B


def test_the_support_is_respected():
    rng = np.random.default_rng(1)
    net = correlating_network(CUBE[[0, 3, 5, 6]], [1, -1, 1, 1], 4, support=CUBE, n_rounds=3, rng=rng)
    assert net.n_active(CUBE).max() <= 1


@pytest.mark.grid
def test_more_rounds_do_not_hurt():
    X = np.random.default_rng(2).choice([-1.0, 1.0], size=(25, 5))
    c = np.random.default_rng(3).normal(size=25)
    reached = [
        c @ correlating_network(X, c, 4, n_rounds=rounds, rng=np.random.default_rng(4))(X) for rounds in (1, 4, 9)
    ]
    assert reached == sorted(reached)


@pytest.mark.grid
@pytest.mark.parametrize(
    ("s", "k"),
    [(1, 1), (3, 1), pytest.param(4, 2, marks=pytest.mark.slow), (3, None)],
)
def test_search_reaches_most_of_the_exact_value_and_never_more(s, k):
    signs = np.random.default_rng(5).choice([-1, 1], size=(5, 8))
    exact = exact_complexity(CUBE, s, k, signs=signs).value
    found = lower_complexity(CUBE, s, k, signs=signs, n_rounds=8, rng=np.random.default_rng(6)).value
    assert 0.85 * exact < found < exact * (1 + 1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": [1.0]}, "one number per point"),
        ({"s": 0}, "`s` must be"),
        ({"k": 0}, "`k` must be"),
        ({"n_rounds": 0}, "`n_rounds` must be"),
        ({"B": -1.0}, "scale `B`"),
        ({"support": [[1.0]]}, "3 columns"),
    ],
)
def test_bad_input(change, message):
    arguments = {"X": CUBE, "coefficients": np.ones(8), "s": 2, "rng": np.random.default_rng(0), **change}
    with pytest.raises(ValueError, match=message):
        correlating_network(**arguments)


@pytest.mark.parametrize("k", [2, None])
def test_strange_numbers_of_units_are_refused(k):
    """Also where the dense class needs the search for one unit alone."""
    for s in (0, -1):
        with pytest.raises(ValueError, match="number `s` of units must be 1 or more"):
            lower_complexity(CUBE, s, k, rng=np.random.default_rng(0))
    for s in (1.5, [1, 2]):
        with pytest.raises(TypeError):
            lower_complexity(CUBE, s, k, rng=np.random.default_rng(0))
