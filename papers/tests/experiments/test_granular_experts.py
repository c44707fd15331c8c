import numpy as np
import pytest
from reproduced import made_up

from sparsact_papers.data import Circle, Sphere
from sparsact_papers.experiments import Outcome, Rows
from sparsact_papers.paper_b import granular_experts as experiment

CLAIMS = {claim.name: claim for claim in experiment.EXPERIMENT.claims}


def test_one_constant_expert_is_the_mean_of_its_bucket():
    """A table of one direction pair cuts the circle into arcs: all points of a bucket have one prediction, its mean."""
    rng = np.random.default_rng(0)
    X = Circle(5).rotated(rng=rng).sample(2000, rng=rng)
    y = rng.normal(size=2000)
    predicted, hit, buckets = experiment.mixture(X, y, X, 0.5, 1, 1, np.random.default_rng(1))
    assert hit.all()
    values, place = np.unique(np.round(predicted, 7), return_inverse=True)
    assert len(values) == buckets
    for i in range(len(values)):
        assert values[i] == pytest.approx(y[place == i].mean(), abs=1e-5)


@pytest.mark.parametrize(("t", "p"), [(1, 4), (2, 2), (4, 1)])
def test_coefficients_together_are_the_least_squares_solution(t, p):
    """The residual is orthogonal to the constants of every table, and to what any split can represent: its own sum."""
    rng = np.random.default_rng(2)
    X = Sphere(2, 6).rotated(rng=rng).sample(3000, rng=rng)
    first, second = (
        experiment.mixture(X, y, X, 1.0, t, p, np.random.default_rng(3))[0]
        for y in (np.sin(X @ np.arange(6)), rng.normal(size=3000))
    )
    again = experiment.mixture(X, first, X, 1.0, t, p, np.random.default_rng(3))[0]
    np.testing.assert_allclose(again, first, atol=1e-4)  # a projection: what was fitted is fitted exactly
    y = np.sin(X @ np.arange(6))
    assert abs((y - first) @ (second - second.mean())) < 1e-3 * np.linalg.norm(y - first) * np.linalg.norm(second)


def test_one_linear_expert_represents_every_linear_function_and_small_experts_do_not():
    rng = np.random.default_rng(4)
    domain = Sphere(2, 6).rotated(rng=rng)
    X, new = domain.sample(3000, rng=rng), domain.sample(500, rng=rng)
    w = rng.normal(size=6)
    errors = {}
    for t, p in ((1, 4), (2, 2), (4, 1)):
        predicted, hit, _ = experiment.mixture(X, X @ w, new, 1.0, t, p, np.random.default_rng(5))
        errors[t] = np.sqrt(np.mean((predicted - new @ w)[hit] ** 2))
    assert errors[1] < 0.01 < min(errors[2], errors[4])  # thin directions of a few buckets are left out


def rows(slope, better):
    made = []
    for manifold, k in experiment.DIMENSIONS.items():
        for target in (experiment.KINKED, experiment.SMOOTH):
            for t, p in experiment.SPLITS[manifold]:
                for seed in range(3):
                    buckets = [100.0 * 2**i * (1 + 0.01 * seed) for i in range(4)]
                    errors = [(1 + 0.05 * seed) * better ** (t - p) * n ** (slope / k) for n in buckets]
                    values = {"scales": [1, 2, 3, 4], "buckets": buckets, "rmse": errors, "misses": [0.0] * 4}
                    parameters = {"manifold": manifold, "target": target, "t": t, "p": p, "rows": 1 << 15, "seed": seed}
                    made.append(made_up(experiment.EXPERIMENT, parameters, values | {"deviation": 1.0}))
    return Rows(made)


@pytest.mark.parametrize(("slope", "outcome"), [(-1.0, Outcome.HOLDS), (-0.5, Outcome.DOES_NOT_HOLD)])
def test_the_rate_matches_the_manifold(slope, outcome):
    assert CLAIMS["rate"].verdict(rows(slope, 1.0)).outcome is outcome


@pytest.mark.parametrize(("better", "outcome"), [(0.9, Outcome.HOLDS), (1.1, Outcome.DOES_NOT_HOLD)])
def test_the_number_of_experts_is_compared_in_pairs(better, outcome):
    assert CLAIMS["granularity"].verdict(rows(-1.0, better)).outcome is outcome
    assert CLAIMS["more-constants"].verdict(rows(-1.0, better)).outcome is outcome


def test_mixtures_are_compared_at_the_most_buckets_that_both_have_ample_rows_for():
    one, other, few = (
        made_up(experiment.EXPERIMENT, {"rows": 32_000, "t": 4, "p": 1, "seed": 0}, {"buckets": n, "rmse": e})
        for n, e in (
            ([10.0, 1000.0, 5000.0], [1.0, 0.01, 9.0]),
            ([10.0, 100.0], [2.0, 0.2]),
            ([2.0, 5000.0], [1.0, 1.0]),
        )
    )
    assert experiment.log_ratio(one, other, 1) == pytest.approx(np.log2(0.1 / 0.2))
    assert experiment.log_ratio(one, few, 1) is None
