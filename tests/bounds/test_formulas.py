"""Bounds against values worked out by hand, against each other, and against what they bound."""

from __future__ import annotations

from math import comb, e, inf, log, sqrt

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from sparsact import bounds
from sparsact.bounds.covers import log_halfspace_sets
from sparsact.constructions import junta, parity


def test_worked_by_hand():
    assert bounds.average_sensitivity_bound(3, 0.5) == 9
    assert bounds.noise_sensitivity_bound(3, 0.5, rho=0.75) == pytest.approx(9 / 8)
    assert bounds.average_sensitivity_bound_paper(4, 2, 2, 3.0, 1.0) == pytest.approx(
        16 * 9 * 2 * log(8) + 8 * sqrt(log(2))
    )
    assert bounds.noise_sensitivity_bound_paper(4, 1, 1, 2.0, 5.0, 0.0) == pytest.approx(4 * log(4) ** 2)
    assert bounds.uniform_degree(3, 4, 1, 2.0, 1.0, 0.5) == pytest.approx(4 * (16 * log(12) ** 4 + log(4)))
    assert bounds.largest_value(16, 2, 3.0, 1.0) == 26
    assert bounds.low_degree_samples(10, 3, 2.0, 0.1, 1 / e) == pytest.approx(40_000)
    assert bounds.general_samples(2, 3, 1, 1.0, 0.0, 2.0, 1.0, 0.5, 1 / e) == pytest.approx(4 * (24 * log(4) + 1))
    assert bounds.dense_complexity_bound(3, 2.0, 1.0, 2.0, 25, c=1.0) == 3
    assert bounds.sparse_complexity_bound(4, 9, 1, 1.0, 0.0, 1.0, 100) == pytest.approx(sqrt(36 * log(100) / 100))
    assert bounds.sparse_complexity_conjecture(9, 4, 1.0, 1.0, 1.0, 36) == 2
    assert bounds.sparse_complexity_bound_explicit(1, 9, 4, 1.0, 1.0, 2.0, 17) == pytest.approx(
        3 * (1 + sqrt(2 * log(34))) * sqrt(36 / 17)
    )
    assert bounds.bucket_diameter(1.0, 4, 64, 1 - 1 / e**2) == pytest.approx(8 / (8 - 2 - 2))
    assert bounds.parity_queries(10, 0.125) == 16
    assert bounds.rounding_units(5, 2, 4) == 46
    assert bounds.table_size(4, 3, 1.0, 0.5) == pytest.approx(64)
    assert bounds.manifold_table_size(8, 2, 0.5) == pytest.approx(64)
    assert bounds.manifold_table_size_proof(4, 2, 1.0) == pytest.approx(512)
    assert bounds.analytic_width_paper(4, 1.0, 1 / (2 * np.pi)) == pytest.approx(2**8)
    assert bounds.analytic_samples_paper(4, 1.0, 1 / (2 * np.pi)) == pytest.approx(2**8 * log(2**8))


@pytest.mark.parametrize(("k", "W", "epsilon"), [(1, 1.0, 0.1), (2, 0.7, 0.3), (1, 0.0, 1.0), (7, 1e3, 1e-3)])
def test_the_sufficient_degree_is_the_least(k, W, epsilon):
    d = bounds.sufficient_degree(k, W, epsilon)
    assert bounds.tail_bound(k, W, d) <= epsilon * (1 + 1e-12)
    assert d == 0 or bounds.tail_bound(k, W, d - 1) > epsilon
    assert d == bounds.degree_from_sensitivity(bounds.average_sensitivity_bound(k, W), epsilon)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"degree": -1}, "`degree` must be a whole number from 0"),
        ({"s": 2}, "`k` must not exceed `s`; got k = 3, s = 2."),
        ({"s": 2.5}, "`s` must be a whole number from 1"),
        ({"W": inf}, "`W` must be finite; got inf."),
        ({"k": None}, "`k` must be a whole number from 1"),
    ],
)
def test_strange_parameters_of_a_tail_are_refused_in_a_line(wrong, message):
    with pytest.raises(ValueError, match=message) as refused:
        bounds.tail_bound(**{"k": 3, "W": 1.0, "degree": 4} | wrong)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 1 - 1e-9, -0.3, -0.9, 1e-9 - 1])
@pytest.mark.parametrize("share", [0.01, 0.4, 0.4999])
def test_the_degree_from_noise_is_the_least(rho, share):
    d = bounds.degree_from_noise(share, rho, epsilon=1.0)
    assert bounds.tail_from_noise(share, rho, d) <= 1
    assert d == 0 or bounds.tail_from_noise(share, rho, d - 1) > 1


def test_noise_that_says_nothing():
    assert bounds.degree_from_noise(0.5, 0.9, epsilon=0.99) == inf
    assert bounds.degree_from_noise(0.5, 0.9, epsilon=1.0) == inf
    assert bounds.degree_from_noise(0.5, 0.0, epsilon=1.0) == 0
    for rho in (1.0, -1.0):
        assert bounds.degree_from_noise(0.0, rho, epsilon=1.0) == inf
        assert bounds.tail_from_noise(0.0, rho, 2) == inf
    with pytest.raises(ValueError, match=r"must be in \[-1, 1\]"):
        bounds.tail_from_noise(0.1, 1.1, 2)


@pytest.mark.parametrize("rho", [-0.9, -0.4, 0.0, 0.4, 0.9])
def test_the_tail_holds_and_is_reached_by_one_size(rho):
    """Every function whose weight lies on one size: none above the bound, and one that reaches it."""
    noise = {size: (1 - rho**size) / 2 for size in range(1, 13)}
    for degree in range(10):
        assert min(bounds.tail_from_noise(noise[size], rho, degree) for size in range(degree + 1, 13)) == pytest.approx(
            1
        )


def test_near_no_noise_it_is_the_bound_by_the_average_sensitivity():
    """NS = (1 - rho) AS / 2 as rho goes to 1."""
    sensitivity, rho = 3.0, 1 - 1e-10
    assert bounds.tail_from_noise((1 - rho) * sensitivity / 2, rho, 9) == pytest.approx(sensitivity / 10)


def test_what_is_too_large_for_a_float():
    huge = bounds.uniform_samples(100, 64, 2, 3.0, 1.0, 0.1, 0.05)
    assert huge == inf
    assert bounds.uniform_samples.log2(100, 64, 2, 3.0, 1.0, 0.1, 0.05) > 1e9
    assert bounds.uniform_degree(9, 9, 3, 1e200, 0.0, 0.1) == inf
    assert bounds.sparse_samples(100, 1, 0.5, 1.0, 0.1, 0.05) < 1e30
    assert bounds.average_sensitivity_bound(10**200, 1.0) == inf


def test_the_sharper_degree_is_far_below_theorem_8():
    for n, s, k, W in ((20, 16, 1, 2.0), (1000, 100, 3, 1.0)):
        assert bounds.sufficient_degree(k, W, 0.1) < 1e-3 * bounds.uniform_degree(n, s, k, W, 1.0, 0.1)


def test_sizes_of_networks_that_are_hard():
    for p in range(6):
        n, s, W, B = bounds.junta_size(p)
        network = junta(np.linspace(1, -1, 2**p), range(p), max(1, p))
        assert (n, s) == (network.n, network.s)
        assert network.scale() == pytest.approx((W, B))
    assert bounds.lifted_parity_size(8).n_inputs == 64
    for m in range(1, 9):
        scales = [parity(range(size), m).scale() for size in range(m + 1)]
        assert max(scale.W for scale in scales) == pytest.approx(bounds.lifted_parity_size(m).W)
        assert max(scale.B for scale in scales) == bounds.lifted_parity_size(m).B
        assert bounds.lifted_parity_size(m).n_units == len([a for a in range(-m, m + 1) if (a - m) % 4 == 0])


def test_sizes_of_any_number_of_digits_are_printed():
    assert "n_units=2**20000," in repr(bounds.junta_size(20_000))
    assert bounds.junta_size(20_000).n_units == 2**20_000
    size = bounds.junta_size(10**12)
    assert (size.n_inputs, size.n_units) == (10**12, inf)
    assert "n_inputs=1.000e+6000" in repr(size._replace(n_inputs=10**6000))


def test_numbers_of_subsets_beyond_every_float_are_not_counted():
    assert bounds.low_degree_samples_explicit(10**6, 10**5, 1.0, 0.1, 0.05) == inf
    assert bounds.low_degree_samples_explicit(1100, 550, 1.0, 0.1, 0.05) == inf
    assert bounds.bucket_count_of_cuts(10**5, 10**6, 3) == inf
    assert bounds.bucket_count_of_cuts(10**6, 600, 1) == float(2**600)  # cut once, all subsets


@pytest.mark.parametrize(("p", "q"), [(1, 5), (0, 5), (-3, 5), (2, 1), (5, 5), (7, 5), (2, 4.5)])
def test_moduli_that_round_nothing(p, q):
    with pytest.raises(ValueError, match=r"`[pq]_modulus` must be"):
        bounds.rounding_units(3, p, q)


class TestRademacher:
    def test_halfspace_sets_of_a_line(self):
        """m points on a line: 2 m sets, each end of the line taken up to any point."""
        assert log_halfspace_sets(1, 17) == pytest.approx(log(34))

    @pytest.mark.parametrize(("n", "m"), [(2, 5), (3, 4), (3, 11), (5, 6)])
    def test_the_count_is_covers(self, n, m):
        assert log_halfspace_sets(n, m) == pytest.approx(log(2 * sum(comb(m - 1, i) for i in range(n + 1))))

    def test_it_bounds_what_halfspaces_do(self):
        """The mean over signs of the best single unit on 9 points, weights (w, b) tried at random: below the bound."""
        rng = np.random.default_rng(0)
        X = rng.choice([1.0, -1.0], (9, 3))
        W = rng.normal(size=(20_000, 3))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        values = np.maximum(X @ W.T - rng.uniform(-1, 1, 20_000), 0)
        signs = rng.choice([1.0, -1.0], (200, 9))
        found = np.abs(signs @ values / 9).max(axis=1).mean()
        assert found <= bounds.sparse_complexity_bound_explicit(3, 1, 1, 1.0, 1.0, sqrt(3), 9)
        assert found <= bounds.dense_complexity_bound(1, 1.0, 1.0, sqrt(3), 9)

    def test_sparsity_pays_for_many_units(self):
        """sqrt(s k n log m) against s: sparser wins from some width on, and the conjecture wins always."""
        sizes = {"W": 1.0, "B": 1.0, "R": 4.0, "m": 10_000}
        for s, sparse_wins in ((16, False), (2**20, True)):
            dense = bounds.dense_complexity_bound(s, **sizes)
            assert (bounds.sparse_complexity_bound_explicit(16, s, 1, **sizes) < dense) == sparse_wins
            assert bounds.sparse_complexity_conjecture(s, 1, **sizes) < dense

    def test_rows_from_a_complexity(self):
        m = bounds.samples_from_rademacher(lambda m: 2 / sqrt(m), 1.0, 0.1, 0.05)
        assert 4 * (2 + sqrt(log(20))) / sqrt(m) <= 0.1 < 4 * (2 + sqrt(log(20))) / sqrt(m - 1)
        assert bounds.samples_from_rademacher(lambda m: 1.0, 1.0, 0.1, 0.05) == inf
        with pytest.raises(ValueError, match="increases from"):
            bounds.samples_from_rademacher(lambda m: log(m) / sqrt(m) + 5, 1.0, 0.1, 0.05)

    def test_theorem_17_with_constants(self):
        sizes = {"s": 64, "k": 1, "W": 1.0, "B": 1.0, "R": 4.0, "C": 5.0, "epsilon": 0.5, "delta": 0.05}
        m = bounds.general_samples_explicit(16, **sizes)
        assert m == bounds.general_samples_explicit(16, **sizes | {"k": 2, "C": 5.0}) or m < inf
        assert m > bounds.general_samples(16, **sizes, c=0.01)


class TestLemmaB1:
    @pytest.mark.parametrize(("k", "K"), [(1, 16), (2, 40), (4, 64)])
    def test_the_diameter_holds_with_its_confidence(self, k, K):
        """The bound asks a least singular value of A; over 200 draws it fails in at most a tenth, and mostly never."""
        rng = np.random.default_rng(K)
        most = bounds.bucket_diameter(0.5, k, K)
        least = np.array([np.linalg.svd(rng.normal(size=(K, k)), compute_uv=False)[-1] for _ in range(200)])
        assert np.mean(0.5 * sqrt(K) / least > most) <= 0.1

    def test_buckets_are_smaller_than_that(self):
        rng = np.random.default_rng(1)
        A = rng.normal(size=(24, 2))
        X = rng.uniform(-1, 1, (2000, 2))
        codes = np.floor((X @ A.T + rng.uniform(0, 1.5, 24)) / 1.5)
        _, bucket = np.unique(codes, axis=0, return_inverse=True)
        widest = max(pdist(X[bucket == i]).max(initial=0.0) for i in range(bucket.max() + 1))
        assert 0 < widest <= bounds.bucket_diameter(1.5, 2, 24)
        cuts = int((codes.max(axis=0) - codes.min(axis=0)).max())
        assert bucket.max() + 1 <= bounds.bucket_count_of_cuts(2, 24, cuts)

    def test_too_few_directions(self):
        assert bounds.bucket_diameter(1.0, 4, 5) == inf

    @pytest.mark.parametrize(("k", "K", "cuts"), [(1, 3, 5), (2, 2, 3), (2, 3, 1), (3, 2, 4)])
    def test_counts_that_geometry_knows(self, k, K, cuts):
        """A line cut K q times; a plane by a grid, and by three lines; two directions in space."""
        known = {(1, 3, 5): 16, (2, 2, 3): 16, (2, 3, 1): 7, (3, 2, 4): 25}
        assert bounds.bucket_count_of_cuts(k, K, cuts) == known[k, K, cuts]


class TestLemmaC2:
    @staticmethod
    def share_kept(radius, k, K, draws=4000):
        """A ball is whole if along every direction both of its ends have the same code as its centre."""
        rng = np.random.default_rng([k, K])
        reach = radius * np.linalg.norm(rng.normal(size=(draws, K, k)), axis=2)
        place = rng.uniform(size=(draws, K))  # of the centre between two cuts at distance 1
        return np.mean(((np.floor(place - reach) == 0) & (np.floor(place + reach) == 0)).all(axis=1))

    @pytest.mark.parametrize(("radius", "k", "K"), [(0.05, 1, 1), (0.02, 3, 7), (0.004, 16, 20), (0.4, 2, 3)])
    def test_balls_are_kept_as_often(self, radius, k, K):
        """Within five standard errors of 4,000 draws: it fails once in a million seeds."""
        least = bounds.ball_within_bucket(radius, 1.0, k, K)
        share = self.share_kept(radius, k, K)
        assert share >= least - 5 * sqrt(0.25 / 4000)
        assert share <= least + 0.15  # and the bound has the right size

    @pytest.mark.grid
    def test_the_printed_radius_is_too_large_for_the_whole_space(self):
        """d directions and radius 1 / (20 d): nine in ten on a line, and ever fewer; 1 / (20 d^1.5) keeps them."""
        shares = [self.share_kept(0.05 / d, d, d, draws=200) for d in (1, 64, 256)]
        assert shares[0] > 0.85 > 0.6 > shares[1] > 0.35 > shares[2]
        assert bounds.ball_within_bucket(0.05 / 256**1.5, 1.0, 256, 256) > 0.9
        assert bounds.ball_within_bucket(0.05 / (256 * sqrt(3)), 1.0, 3, 256) > 0.9


class TestNumbersOfNumPy:
    """They mean what Python's mean: no integer wraps around, no float warns."""

    @pytest.mark.parametrize(
        "entry", [e for e in bounds.BOUNDS if "complexity" not in e.parameters], ids=lambda e: e.name
    )
    def test_the_same_value(self, entry):
        whole = {"n": 120, "s": 101, "k": 100, "m": 127, "length": 11, "degree": 9, "ambient": 120, "intrinsic": 100}
        whole |= {"n_directions": 110, "cuts": 90, "p": 6, "p_modulus": 3, "q_modulus": 100}
        given = {name: whole.get(name, 0.25) for name in entry.parameters}
        numpy = {name: np.int8(value) if name in whole else np.float64(value) for name, value in given.items()}
        for function in (entry.function, entry.log2):
            if function is not None:
                assert function(**numpy) == function(**given)

    def test_too_large_is_infinite(self):
        assert bounds.average_sensitivity_bound(np.int64(2**40), 1.0) == 4 * 2.0**80
        assert bounds.noise_sensitivity_bound(np.int64(2**40), np.float64(1e200), 0.5) == inf

    @pytest.mark.parametrize("W", ["1", None, 1j, np.ones(2)])
    def test_what_is_no_number(self, W):
        with pytest.raises(ValueError, match="`W` must be a real number"):
            bounds.average_sensitivity_bound(1, W)


def test_many_dimensions_take_no_memory():
    exact = 1_000_000 * (1 + log(10)) + log(2)
    assert log_halfspace_sets(1_000_001, 10_000_011) == pytest.approx(exact, rel=1e-5)
    assert log_halfspace_sets(1_000_000, 10_000_001) <= exact
    assert log_halfspace_sets(10**12, 10**12 + 9) == pytest.approx(1e12 * log(2))


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_complexity_that_is_none(value):
    with pytest.raises(ValueError, match="zero or positive; it is"):
        bounds.samples_from_rademacher(lambda m: value, 1.0, 0.1, 0.05)
