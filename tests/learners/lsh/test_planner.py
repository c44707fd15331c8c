"""Plans keep their promise: the uniform errors of Theorems 4.1 and C.1, with every constant written out."""

from math import inf, pi, sqrt

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import binom

from sparsact import bounds, plan_table
from sparsact_papers.data import Circle, LowerEnvelope, Sphere, SwissRoll, random_subspace


def planned_error(plan, seed):
    """Largest error at 20,000 new points of a random subspace, and the learner, for a random 1-Lipschitz function."""
    rng = np.random.default_rng([seed, plan.intrinsic])
    domain = random_subspace(plan.ambient, plan.intrinsic, rng=rng)
    centres = domain.coordinates(domain.sample(7, rng=rng))
    f = LowerEnvelope(centres, rng.uniform(0, 0.5, 7))
    X, queries = domain.sample(int(plan.samples), rng=rng), domain.sample(20_000, rng=rng)
    learner = plan.estimator(random_state=seed).fit(X, plan.lipschitz * f(domain.coordinates(X)))
    truth = plan.lipschitz * f(domain.coordinates(queries))
    return np.abs(learner.predict(queries) - truth).max(), learner


@pytest.mark.parametrize(("intrinsic", "epsilon", "lipschitz"), [(1, 0.2, 1.0), (1, 3.0, 10.0), (2, 1.2, 1.0)])
def test_the_planned_table_reaches_the_promised_error(intrinsic, epsilon, lipschitz):
    """Each of 3 draws may fail with probability 0.01 by the theorem; seeds are fixed."""
    plan = plan_table(intrinsic, epsilon, ambient=5, lipschitz=lipschitz, confidence=0.99)
    assert plan.samples < 100_000
    for seed in range(3):
        error, learner = planned_error(plan, seed)
        assert error <= epsilon
        assert learner.n_buckets_ <= plan.n_buckets
        assert (learner.n_hashes_, learner.bucket_width_, learner.n_tables) == (plan.n_hashes, plan.bucket_width, 1)


# With the distortion of each: pi / (2 sqrt(d)) and 2 / (2 sqrt(d)) by the share of an arc and of a cap; the roll is
# isometric to a rectangle of diagonal 5.24.
MANIFOLDS = [
    (Circle(2), 0.2, pi / sqrt(8)),
    (Circle(7), 0.1, pi / sqrt(28)),
    (Sphere(2, 3), 0.9, 1 / sqrt(3)),
    (SwissRoll(3), 1.3, 5.25 / sqrt(12)),
]


def error_on_a_manifold(domain, plan, samples, seed):
    """Largest error at 5,000 new points for a random 1-Lipschitz function, a lower envelope of distances."""
    rng = np.random.default_rng([seed, domain.dimension])
    turned = domain.rotated(rng=rng)
    f = LowerEnvelope(turned.sample(7, rng=rng), rng.uniform(0, 0.3, 7))
    X, queries = turned.sample(int(samples), rng=rng), turned.sample(5000, rng=rng)
    learner = plan.estimator(random_state=seed).fit(X, f(X))
    return np.abs(learner.predict(queries) - f(queries)).max()


@pytest.mark.grid
@pytest.mark.parametrize(("domain", "epsilon", "distortion"), MANIFOLDS)
def test_a_plan_for_a_manifold_keeps_its_promise(domain, epsilon, distortion):
    """At least 7 of 12 runs at confidence 0.9: fewer have a chance below 1e-3 if each keeps it 9 times in 10."""
    plan = plan_table(
        domain.dimension, epsilon, ambient=domain.ambient, theorem="C.1", confidence=0.9, distortion=distortion
    )
    assert binom.cdf(6, 12, 0.9) < 1e-3
    assert sum(error_on_a_manifold(domain, plan, plan.samples, seed) <= epsilon for seed in range(12)) > 6


@pytest.mark.grid
def test_the_rows_of_theorem_c_1_with_constant_one_do_not_suffice():
    """14 rows for the circle: the longest arc without one is 2 pi H(14) / 14 = 1.46 on average, errors half of it."""
    plan = plan_table(1, 0.2, ambient=2, theorem="C.1")
    kept = sum(error_on_a_manifold(Circle(2), plan, plan.paper_samples, seed) <= 0.2 for seed in range(10))
    assert kept < 5


@pytest.mark.parametrize(("domain", "epsilon", "distortion"), MANIFOLDS)
def test_balls_hold_what_the_distortion_says(domain, epsilon, distortion):
    """Shares of 20,000 points about 200 of them, at the radius of the plan; 5 standard errors below is 1 in 10^4."""
    X = domain.sample(20_000, rng=np.random.default_rng(domain.ambient))
    radius = epsilon / 6
    least = (radius / (2 * distortion * sqrt(domain.ambient))) ** domain.dimension
    shares = cKDTree(X).query_ball_point(X[:200], radius, return_length=True) / len(X)
    assert shares.min() >= least - 5 * sqrt(least / len(X))


@pytest.mark.parametrize("theorem", ["4.1", "C.1"])
def test_buckets_are_as_small_as_promised(theorem):
    """Diameters of all buckets of 3,000 rows, at a confidence of 0.99 for each of 5 draws."""
    plan = plan_table(2, 0.9, ambient=5, theorem=theorem, confidence=0.99)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        domain = random_subspace(5, 2, rng=rng) if theorem == "4.1" else Sphere(2, 5).rotated(rng=rng)
        X = domain.sample(3000, rng=rng)
        for numbers in plan.estimator(random_state=seed).fit(X, X[:, 0]).apply(X).T:
            order = np.argsort(numbers)
            for bucket in np.split(X[order], np.flatnonzero(np.diff(numbers[order])) + 1):
                assert np.linalg.norm(bucket[:, None] - bucket[None], axis=2).max() <= 0.9 / 3


def test_queries_in_empty_buckets_get_the_mean_of_the_nearest_one():
    """Most of the queries beside few rows meet empty buckets; positions are means in all of R^2, means by hand."""
    rng = np.random.default_rng(3)
    X, queries = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, (200, 2))
    y = X[:, 0] - 2 * X[:, 1]
    learner = plan_table(2, 1.5, ambient=2).estimator(random_state=5).fit(X, y)
    missed = learner.apply(queries)[:, 0] < 0
    assert missed.mean() > 0.6
    numbers = learner.apply(X)[:, 0]
    assert len(np.unique(numbers)) > 20
    buckets = [numbers == number for number in np.unique(numbers)]
    positions = np.array([X[inside].mean(axis=0) for inside in buckets])
    closest = np.linalg.norm(queries[missed, None] - positions, axis=2).argmin(axis=1)
    means = np.array([y[inside].mean() for inside in buckets])
    np.testing.assert_allclose(learner.predict(queries[missed]), means[closest], rtol=1e-9)


def test_the_memory_is_about_that_of_the_table():
    plan = plan_table(1, 0.2, ambient=5)
    table = planned_error(plan, 0)[1].table_
    per_bucket = (table.index.slots.nbytes + table.index.keys.nbytes + table.counts.nbytes + table.sums.nbytes) / len(
        table.index
    )
    per_row = (table.rows.index.slots.nbytes + table.rows.keys.nbytes + 8 * len(table.rows)) / plan.samples
    assert 0.5 < plan.bytes / (plan.n_buckets * per_bucket + plan.samples * per_row) < 2


@pytest.mark.parametrize("theorem", ["4.1", "C.1"])
def test_plans_scale_as_the_theorems_say(theorem):
    for k in (1, 2, 3):
        coarse, fine = (plan_table(k, epsilon, ambient=12, theorem=theorem) for epsilon in (0.02, 0.01))
        finer_tables = theorem == "C.1"  # more of them, each with less of the failure probability
        assert coarse.bucket_width == pytest.approx(2 * fine.bucket_width, rel=0.02 if finer_tables else 1e-12)
        assert 2**k <= fine.samples / coarse.samples < 2**k * 1.4
        assert fine.n_hashes - coarse.n_hashes in ((0, 1, 2) if finer_tables else (0,))
        scaled = plan_table(k, 0.2, ambient=12, theorem=theorem, lipschitz=10.0)
        assert (scaled.bucket_width, scaled.samples) == pytest.approx((coarse.bucket_width, coarse.samples))


def test_the_paper_stands_beside():
    plan = plan_table(2, 0.5, ambient=9, theorem="C.1")
    assert plan.paper_buckets == bounds.manifold_table_size(9, 2, 0.5)
    assert plan.n_tables == np.ceil(bounds.manifold_tables(9, 2, 0.5))
    assert plan.n_hashes >= 9
    assert plan.paper_samples == bounds.manifold_samples(9, 2, 0.5) < plan.samples
    assert plan.estimator().n_tables == plan.n_tables
    plan = plan_table(2, 0.5, ambient=9)
    assert plan.paper_buckets == bounds.table_size(9, 2, 1.0, 0.5)
    assert plan.paper_samples == bounds.table_samples(9, 2, 1.0, 0.5) < plan.samples


def test_plans_beyond_the_floats():
    plan = plan_table(8, 1e-300, ambient=1000)
    assert plan.samples == plan.bytes == plan.n_buckets == inf
    assert plan_table(8, 1e-300, ambient=64, theorem="C.1").samples == inf


NOTHING = {
    "intrinsic": {"intrinsic": 0}, "must not exceed": {"intrinsic": 6}, "at most 8": {"intrinsic": 9, "ambient": 20},
    "epsilon": {"epsilon": 0.0}, "epsilon|nan": {"epsilon": np.nan}, "L": {"lipschitz": -1.0},
    "confidence": {"confidence": 1.0}, "4.2": {"theorem": "4.2"},
    "at most 64 for a manifold": {"theorem": "C.1", "ambient": 65},
    "`distortion` must be": {"theorem": "C.1", "distortion": 0.0},
}  # fmt: skip


@pytest.mark.parametrize("message", NOTHING)
def test_what_means_nothing(message):
    with pytest.raises(ValueError, match=message):
        plan_table(**{"intrinsic": 2, "epsilon": 0.5, "ambient": 5, **NOTHING[message]})
