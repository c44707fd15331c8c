"""Attacks on learning with rounding: reduced bases by exact fractions, planted secrets, and equations that hold."""

from fractions import Fraction
from itertools import pairwise
from math import comb

import numpy as np
import pytest

from sparsact.hardness import (
    LearningWithRounding,
    carry_monomials,
    lattice_secret,
    linearisation_samples,
    linearisation_unknowns,
    linearised_secret,
    lll,
    solve_modulo,
)
from sparsact.hardness.learning_with_rounding import all_residues
from sparsact.hardness.rounding_attacks import monomials


def gram_schmidt(basis):
    """Orthogonal vectors and coefficients, as fractions."""
    orthogonal, coefficients = [], []
    for row in basis:
        row = [Fraction(int(entry)) for entry in row]
        mu = [sum(a * b for a, b in zip(row, star, strict=True)) / sum(a * a for a in star) for star in orthogonal]
        for factor, star in zip(mu, orthogonal, strict=True):
            row = [a - factor * b for a, b in zip(row, star, strict=True)]
        orthogonal.append(row)
        coefficients.append(mu)
    return [sum(a * a for a in star) for star in orthogonal], coefficients


def coordinates(vectors, basis):
    """Rational coordinates of vectors in a square basis: by exact Gaussian elimination."""
    d = len(basis)
    rows = [
        [Fraction(int(x)) for x in (*column, *side)]
        for column, side in zip(np.transpose(basis), np.transpose(vectors), strict=True)
    ]
    for k in range(d):
        pivot = next(i for i in range(k, d) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(d):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [entry for row in rows for entry in row[d:]]


@pytest.mark.parametrize(("d", "largest", "delta"), [(2, 1000, 0.75), (5, 30, 0.99), (9, 2**17, 0.75), (13, 40, 0.99)])
def test_a_reduced_basis(d, largest, delta):
    """Same lattice, size-reduced, and Lovasz's condition, all in fractions (conditions within float64 rounding)."""
    rng = np.random.default_rng(d)
    basis = rng.integers(-largest, largest + 1, size=(d, d)) + np.eye(d, dtype=int)
    basis[1:] += 3 * basis[0]
    given = basis.copy()
    reduced, operations = lll(basis, delta)
    assert np.array_equal(basis, given)
    assert operations > 0
    for new, old in ((reduced, basis), (basis, reduced)):
        assert all(entry.denominator == 1 for entry in coordinates(new, old))
    squares, mu = gram_schmidt(reduced)
    assert max((abs(factor) for row in mu for factor in row), default=0) <= Fraction(1, 2) + Fraction(1, 10**9)
    for k, (before, after) in enumerate(pairwise(squares), start=1):
        assert after >= (Fraction(delta) - mu[k][k - 1] ** 2) * before * (1 - Fraction(1, 10**9))


def test_a_reduced_basis_of_fewer_vectors_than_coordinates():
    """By hand: the second less twice the first, then the first less 17 times that."""
    reduced, _ = lll([[1, 2, 30, 4], [2, 4, 61, 9]])
    assert reduced.tolist() == [[0, 0, 1, 1], [1, 2, 13, -13]]  # orthogonal


@pytest.mark.parametrize("attack", [linearised_secret, lattice_secret])
@pytest.mark.parametrize(("m", "p", "q"), [(1, 2, 7), (2, 3, 11), (3, 2, 5), (4, 5, 13)])
def test_an_attack_finds_the_secret_that_predicts_fresh_labels(attack, m, p, q):
    """Seeds are fixed; another secret would have all labels of 64 samples or more with chance below q^m 0.8^64."""
    rng = np.random.default_rng([m, q])
    problem = LearningWithRounding(rng.integers(q, size=m), p, q)
    Y, labels = problem.residues(max(linearisation_samples(m, p, q), 60), rng=rng)
    search = attack(Y, labels, p, q)
    assert np.array_equal(search.secret, problem.secret)
    assert search.operations >= 0
    fresh, expected = problem.residues(300, rng=rng)
    assert np.array_equal(LearningWithRounding(search.secret, p, q).labels(fresh), expected)
    wrong = labels.copy()
    wrong[::2] = (wrong[::2] + 1) % p
    assert attack(Y, wrong, p, q).secret is None


def test_an_attack_without_enough_samples_finds_nothing():
    rng = np.random.default_rng(5)
    Y, labels = LearningWithRounding([1, 9, 4, 7], 3, 11).residues(12, rng=rng)
    assert linearised_secret(Y, labels, 3, 11).secret is None
    with pytest.raises(ValueError, match="must be prime; 9"):
        lattice_secret(Y % 9, labels, 3, 9)
    with pytest.raises(ValueError, match="must be prime; 9"):
        linearised_secret(Y % 9, labels, 3, 9)


def test_monomials_are_all_of_them():
    values = all_residues(3, 5)
    columns = monomials(values, 4, 5)
    assert columns.shape[1] == comb(7, 3) == linearisation_unknowns(3, 2, 8) + 1
    powers = {(a, b, c) for a in range(5) for b in range(5) for c in range(5) if a + b + c <= 4}
    expected = {tuple(np.prod([v**e for v, e in zip(values.T, each, strict=True)], axis=0) % 5) for each in powers}
    assert {tuple(column) for column in columns.T} == expected
    assert (columns[:, 0] == 1).all()


@pytest.mark.parametrize(("m", "p"), [(3, 2), (2, 3), (1, 5)])
def test_rounded_labels_modulo_a_square_are_polynomials(m, p):
    """At all vectors: a combination found on a part of them predicts the rest."""
    rng = np.random.default_rng(p)
    Y = rng.permutation(all_residues(m, p * p))
    labels = LearningWithRounding(rng.integers(p * p, size=m), p, p * p).labels(Y)
    solution = solve_modulo(carry_monomials(Y, p), labels, p)
    assert np.array_equal(carry_monomials(Y, p) @ solution.values % p, labels)
    part = 2 * len(Y) // 3
    learned = solve_modulo(carry_monomials(Y[:part], p), labels[:part], p)
    assert learned.rank == solution.rank
    assert np.array_equal(carry_monomials(Y[part:], p) @ learned.values % p, labels[part:])


@pytest.mark.parametrize(
    ("basis", "delta", "message"),
    [
        ([[1, 2], [2, 4]], 0.99, "dependent"),
        ([[1.5, 2.0]], 0.99, "integer vectors"),
        ([[1], [2]], 0.99, "d <= n"),
        ([[2**21, 0]], 0.99, "up to 2\\*\\*20"),
        ([[1, 0]], 1.0, "above 1/4"),
    ],
)
def test_bad_bases(basis, delta, message):
    with pytest.raises(ValueError, match=message):
        lll(basis, delta)
