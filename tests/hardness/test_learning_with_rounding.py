"""Learning with rounding: the reduction both ways, brute force, and the form that is linear."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from sparsact.hardness import (
    InconsistentLabelsError,
    LearningWithRounding,
    RoundingReduction,
    StatisticalQueryOracle,
    binary_degree,
    consistent_secrets,
    secret_modulo,
    solve_modulo,
)
from sparsact.hardness.learning_with_rounding import Residues, all_residues

INSTANCES = [([3, 1, 2], 2, 4), ([4, 2], 3, 5), ([6, 0], 5, 8), ([5], 2, 7)]


def by_the_definition(w, Y, p, q, rule):
    """Python integers, one at a time."""
    sums = [sum(int(a) * int(b) for a, b in zip(w, y, strict=True)) % q for y in Y]
    return [total * p // q if rule == "round" else total % p for total in sums]


@pytest.mark.parametrize("rule", ["round", "modulo"])
@pytest.mark.parametrize(("w", "p", "q"), INSTANCES)
def test_the_network_has_the_labels_at_every_lifted_point(w, p, q, rule):
    instance = LearningWithRounding(w, p, q, rule)
    Y = all_residues(len(w), q)
    X, y, probability = instance.support()
    expected = by_the_definition(w, Y, p, q, rule)
    assert instance.labels(Y).tolist() == expected
    net = instance.network()
    assert np.array_equal(net(X), expected)
    assert np.array_equal(y, expected)
    assert net.n_active(X).max() == 1
    assert net.n == instance.n == X.shape[1]
    assert probability == pytest.approx(np.full(q ** len(w), q ** -len(w)))


def test_the_network_at_random_points_of_a_larger_instance():
    instance = LearningWithRounding([11, 0, 7, 15, 4], 4, 16)
    X, y = instance.sample(150, rng=np.random.default_rng(2))
    assert np.array_equal(instance.network()(X), y)
    with pytest.raises(ValueError, match=r"16\*\*5"):
        instance.support()


@pytest.mark.parametrize("q", [4, 6])
def test_samples_of_the_problem_become_samples_of_the_lifted_distribution(q):
    """Forwards: with no secret at hand, the reduction of uniform samples has the frequencies of the support.

    9000 samples over q**2 points, each of probability at most 1/16: by Bernstein a frequency is off by more than 0.02
    with probability below exp(-27).
    """
    instance = LearningWithRounding([3, 2], 2, q)
    X, y = RoundingReduction(2, 2, q).examples(instance.residues(9000, rng=np.random.default_rng(q)))
    support = instance.support()
    place = {point.tobytes(): k for k, point in enumerate(support.X)}
    assert len(place) == q * q  # the lift is one to one
    places = np.array([place[point.tobytes()] for point in X])  # and no sample lies elsewhere
    assert np.array_equal(y, support.y[places])
    assert np.abs(np.bincount(places, minlength=q * q) / 9000 - 1 / q**2).max() < 0.02


def test_a_hypothesis_on_lifted_points_predicts_labels():
    """Backwards: its predictor is right just where the hypothesis rounds to the label."""
    instance = LearningWithRounding([4, 1], 3, 6)
    Y = all_residues(2, 6)
    assert np.array_equal(instance.reduction.predictor(instance.network())(Y), instance.labels(Y))
    rng = np.random.default_rng(4)
    noise = rng.uniform(-0.9, 0.9, len(Y))
    X, y, _ = instance.support()

    def hypothesis(points):
        assert np.array_equal(points, X)
        return y + noise

    right = instance.reduction.predictor(hypothesis)(Y) == instance.labels(Y)
    assert right[np.abs(noise) < 0.5].all()
    wrong = (np.abs(noise) > 0.5) & (y + np.sign(noise) >= 0) & (y + np.sign(noise) <= 2)
    assert not right[wrong].any()
    # Squared error e leaves at most 4 e wrong labels: a wrong one is off by 1/2 at least.
    assert np.mean(~right) <= 4 * np.mean(noise**2)


@pytest.mark.parametrize("rule", ["round", "modulo"])
@pytest.mark.parametrize(("w", "p", "q"), INSTANCES)
def test_brute_force_finds_the_secret_and_its_network(w, p, q, rule):
    """From 40 samples; a wrong secret that differs from w at a quarter of all y survives with chance 0.75**40 < 2e-5,
    and secrets that are equivalent to w on all y may stay."""
    instance = LearningWithRounding(w, p, q, rule)
    samples = instance.residues(40, rng=np.random.default_rng(q))
    secrets = consistent_secrets(samples.Y, samples.labels, p, q, rule=rule)
    assert w in secrets.tolist()
    X, y, _ = instance.support()
    for secret in secrets:
        assert np.array_equal(LearningWithRounding(secret, p, q, rule).network()(X), y)
    if rule == "round":
        assert secrets.tolist() == [w]
    with_noise = consistent_secrets(samples.Y, (samples.labels + np.arange(40) % 2) % p, p, q, rule=rule)
    assert len(with_noise) == 0


def test_the_printed_definition_is_linear_where_p_divides_q():
    """25 unknowns modulo 5 of q = 35, far beyond brute force: rank 25 from 45 samples except with chance 5**-20."""
    rng = np.random.default_rng(8)
    instance = LearningWithRounding(rng.integers(35, size=25), 5, 35, "modulo")
    Y, labels = instance.residues(45, rng=rng)
    solution = secret_modulo(Y, labels, 5, 35)
    assert solution.unique
    assert np.array_equal(solution.values, instance.secret % 5)
    fresh, expected = instance.residues(300, rng=rng)
    assert np.array_equal(fresh @ solution.values % 5, expected)


def test_rounding_is_not_linear():
    """The same elimination on rounded labels: 45 equations in 25 unknowns are consistent with chance about 5**-20."""
    rng = np.random.default_rng(9)
    Y, labels = LearningWithRounding(rng.integers(35, size=25), 5, 35).residues(45, rng=rng)
    with pytest.raises(InconsistentLabelsError, match="labels are not linear modulo 5"):
        secret_modulo(Y, labels, 5, 35)


def test_rounding_from_nine_to_three_is_a_cubic_over_three_elements():
    """Elimination on monomials in the base-3 digits of y: 84 of degree 3 in 6 digits, and no secret is searched for."""
    rng = np.random.default_rng(10)
    instance = LearningWithRounding(rng.integers(9, size=3), 3, 9)

    def monomials(Y):
        digits = np.hstack([Y % 3, Y // 3])
        chosen = (list(c) for size in range(4) for c in combinations_with_replacement(range(6), size))
        return np.stack([digits[:, c].prod(axis=1) for c in chosen], axis=1)

    Y, labels = instance.residues(300, rng=rng)
    fresh, expected = instance.residues(400, rng=rng)
    solution = solve_modulo(monomials(Y), labels, 3)
    assert np.array_equal(monomials(fresh) @ solution.values % 3, expected)


@pytest.mark.parametrize(("m", "p", "q"), [(3, 2, 4), (4, 2, 8), (4, 4, 16), (3, 4, 16), (3, 2, 16), (3, 8, 16)])
def test_the_lowest_bit_of_a_label_has_degree_q_over_p(m, p, q):
    """Over GF(2), in the bits of y, for powers of two: at most, and with m >= q / p ones as the secret exactly."""
    rng, Y = np.random.default_rng([m, q]), all_residues(m, q)

    def degree(secret):
        return binary_degree(1 - 2 * (LearningWithRounding(secret, p, q).labels(Y) & 1))

    assert max(degree(rng.integers(q, size=m)) for _ in range(5)) <= q // p
    ones = degree(np.ones(m, dtype=int))
    assert ones == q // p if m >= q // p else ones <= q // p


def test_the_lowest_digit_to_another_base():
    """p = q / 3 = 9: the digit that 27 has lost to 9, from monomials of degree 3 in the three digits of each entry."""
    rng = np.random.default_rng(3)
    instance = LearningWithRounding(rng.integers(27, size=2), 9, 27)

    def features(Y):
        digits = np.hstack([Y % 3, Y // 3 % 3, Y // 9])
        chosen = (list(c) for size in range(4) for c in combinations_with_replacement(range(6), size))
        return np.stack([digits[:, c].prod(axis=1) for c in chosen], axis=1)

    Y = rng.permutation(all_residues(2, 27))
    digit = instance.labels(Y) % 3
    solution = solve_modulo(features(Y[:400]), digit[:400], 3)
    assert np.array_equal(features(Y) @ solution.values % 3, digit)


def test_statistical_queries_about_rounding():
    instance = LearningWithRounding([1, 3], 4, 4)
    oracle = StatisticalQueryOracle(instance, 0.01, "exact")
    _, y, _ = instance.support()
    assert oracle.query(lambda X, labels: labels / 3) == pytest.approx(y.mean() / 3)


def test_bad_instances():
    for w, p, q, message in [
        ([1, 2], 5, 4, "2 <= p <= q"),
        ([1, 2], 1, 4, "2 <= p <= q"),
        ([1, 4], 2, 4, "residues modulo 4"),
        ([1, 0.5], 2, 4, "residues modulo 4"),
        ([[1, 2]], 2, 4, "one vector"),
    ]:
        with pytest.raises(ValueError, match=message):
            LearningWithRounding(w, p, q)
    instance = LearningWithRounding([1, 2], 2, 4)
    with pytest.raises(ValueError, match="residues modulo 4"):
        instance.labels([[0, 7]])
    with pytest.raises(ValueError, match="vector of 2 residues"):
        instance.reduction.examples(Residues(np.zeros((3, 5)), np.zeros(3)))
    Y = np.zeros((4, 3), dtype=int)
    with pytest.raises(ValueError, match="must agree"):
        consistent_secrets(Y, np.zeros(5), 2, 4)
    with pytest.raises(ValueError, match="at most 2\\*\\*22"):
        consistent_secrets(np.zeros((4, 12)), np.zeros(4), 2, 4)
    with pytest.raises(ValueError, match="must be prime; 4 = 2"):
        secret_modulo(Y, np.zeros(4), 4, 8)
    with pytest.raises(ValueError, match="3 does not divide 8"):
        secret_modulo(Y, np.zeros(4), 3, 8)
