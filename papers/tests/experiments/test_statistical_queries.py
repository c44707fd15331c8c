"""Hidden parities: learners against routes of their own, and the judges on made-up rows."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points
from sparsact_papers.common import parities as learners
from sparsact_papers.experiments import Row
from sparsact_papers.paper_a import statistical_queries as experiment
from sparsact_papers.paper_a import statistical_queries_claims as claims

RIGHT = {"queries": 900, "examples": 12, "error": 0.0, "bound": 60.0}


def made(learner: str, values: dict[str, Any] | None = None, **other: Any) -> Row:
    parameters = {"learner": learner, "size": 3, "m": 9, "noise": 0.0, "seed": 0} | other
    return Row("0", "sq-ledger", 1, parameters, RIGHT | (values or {}), 0.0, "", {}, {}, "")


def test_all_coefficients_of_the_bent_function_are_an_eighth() -> None:
    coefficients = walsh_hadamard(learners._bent(points(learners.BENT_BITS)))
    assert set(np.abs(coefficients)) == {0.125}
    assert learners.TOLERANCE < 0.125


@pytest.mark.parametrize("m", [6, 7, 9])
def test_searches_of_any_parity_count_their_queries(m: int) -> None:
    characters = learners.by_characters(m, np.random.default_rng(m))
    assert characters == (2**m, 0, 0.0)
    bent = learners.by_bent_functions(m, np.random.default_rng(m))
    assert bent.error == 0
    assert 2 ** (m - 6) < bent.queries - 28 <= 2 ** (m - 6) + 8  # 28 or 36 coefficients have the sign of the answer


def test_queries_of_low_degree_and_of_a_sample() -> None:
    m, subset = 7, [1, 2, 5]
    queries = sum(comb(m, k) for k in range(4))
    for noise in (0.0, 0.1):
        found = learners.by_low_degree(subset, m, 3, noise, np.random.default_rng(0))
        assert found == (queries, 0, 0.0)
    assert learners.by_low_degree(subset, m, 2, 0.0, np.random.default_rng(0)).error == 0.5
    juntas = learners.by_juntas(subset, m, np.random.default_rng(0))
    assert (juntas.queries, juntas.error) == (queries - 1, 0.0)
    assert learners.by_membership(subset, m, np.random.default_rng(0)).error == 0


@pytest.mark.parametrize("lifted", [False, True])
def test_elimination_stops_at_full_rank(lifted: bool) -> None:
    found = learners.by_elimination([0, 3], 6, 0.0, np.random.default_rng(2), lifted=lifted)
    assert found.error == 0
    assert 6 <= found.examples <= 26
    assert learners.by_elimination([0, 3], 6, 0.4, np.random.default_rng(2), lifted=lifted).error == 0.5


def test_bounds_and_certificates() -> None:
    assert experiment.bound(0, 8) == pytest.approx(0.124**2 * (256 - 9))
    assert experiment.bound(3, 12) == pytest.approx(0.124**2 * (220 - 9))
    assert experiment.bound(2, 4) == 0
    found = experiment.measure(learner=claims.NETWORK, size=3, m=3, noise=0.0, seed=1)
    assert found == {"on_lift": 1, "on_cube": 2, "on_cube_signs": 3}
    with pytest.raises(ValueError, match="a learner of this experiment"):
        experiment.measure(learner="nobody", size=3, m=5, noise=0.0, seed=1)
