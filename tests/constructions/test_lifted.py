"""Parity and learning with rounding on their lifts: every value, every count, every norm."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.constructions import ResidueLift, lifted, parity, rounded_products, rounding, uniform
from sparsact.hypercube import characters, points
from sparsact.lift import Lift

SUBSETS = [((), 2), ((1,), 3), ((0, 2), 3), ((0, 1, 2), 3), ((1, 3, 4), 6), ((0, 1, 2, 3), 5), (range(7), 7)]
SECRETS = [([1], 2, 2), ([0, 3], 2, 4), ([2, 4], 3, 5), ([1, 6, 3], 2, 7), ([5, 0, 3], 8, 8)]


def residues(m, q):
    return np.stack(np.meshgrid(*[np.arange(q)] * m, indexing="ij"), axis=-1).reshape(-1, m)


@pytest.mark.parametrize(("subset", "m"), SUBSETS)
def test_parity_is_the_character(subset, m):
    Y = points(m)
    X, character = Lift.quadratic(m)(Y), characters(Y, [subset])[:, 0]
    assert np.array_equal(parity(subset, m)(X), (1 + character) / 2)
    assert np.array_equal(parity(subset, m, signs=True)(X), character)


@pytest.mark.parametrize(("subset", "m"), SUBSETS)
def test_parity_is_one_sparse_on_the_lift(subset, m):
    Y = points(m)
    X, even = Lift.quadratic(m)(Y), characters(Y, [subset])[:, 0] > 0
    assert np.array_equal(parity(subset, m).n_active(X), even)
    assert (parity(subset, m, signs=True).n_active(X) == 1).all()


@pytest.mark.parametrize(("subset", "m"), SUBSETS)
def test_size_and_scale_of_parity(subset, m):
    size = len(subset)
    net, both = parity(subset, m), parity(subset, m, signs=True)
    assert (net.n, net.s, both.s) == (m * m, size // 2 + 1, size + 1)
    assert net.has_exact_weights().all()
    W, B = net.scale()
    assert pytest.approx(np.sqrt(size * (size - 1) + 4 * size**3) / 4) == W <= np.sqrt(4.25 * m**3) / 4 * (1 + 1e-12)
    assert abs((size + size**2) / 4 - 1) == B


def test_parity_is_not_one_sparse_on_the_whole_cube():
    assert parity((0, 1, 2), 3, signs=True).n_active(points(9)).max() == 3
    assert parity((0, 1, 2), 3).n_active(points(9)).max() == 2


def test_weights_of_one_unit_of_parity():
    expected = [[1, 0, -0.25], [0, 0, 0], [-0.25, 0, 1]]
    assert np.array_equal(parity((0, 2), 3).W[0].reshape(3, 3), expected)
    sparse = parity((0, 2), 4)
    assert sparse.W.nnz == 8
    assert np.array_equal(sparse.W.toarray()[0].reshape(4, 4)[:3, :3], expected)


@pytest.mark.parametrize(("subset", "m", "message"), [((3,), 3, "names coordinate 3"), ((1, 1), 3, "twice")])
def test_strange_subsets_are_refused(subset, m, message):
    with pytest.raises(ValueError, match=message):
        parity(subset, m)


@pytest.mark.parametrize("rule", ["round", "modulo"])
@pytest.mark.parametrize(("w", "p", "q"), SECRETS)
def test_rounding_is_the_function(w, p, q, rule):
    Y = residues(len(w), q)
    t = Y @ np.array(w) % q
    expected = np.floor(p / q * t) if rule == "round" else t % p
    net, lift = rounding(w, p, q, rule=rule), ResidueLift(len(w), q)
    assert np.array_equal(rounded_products(w, Y, p, q, rule=rule), expected)
    assert np.array_equal(net(lift(Y)), expected)
    assert (net.n_active(lift(Y)) == 1).all()
    assert (net.n, net.s) == (lift.n, len(w) * (q - 1) ** 2 + 1)
    assert net.has_exact_weights().all()


@pytest.mark.parametrize(("w", "p", "q"), SECRETS)
def test_rounding_is_one_sparse_on_the_lift_of_all_digits(w, p, q):
    lift = ResidueLift(len(w), q)
    assert rounding(w, p, q).n_active(lift.quadratic(points(len(w) * lift.n_bits))).max() == 1


@pytest.mark.parametrize(("w", "p", "q"), SECRETS)
def test_scale_of_rounding(w, p, q):
    """The formula of the docstring, term by term."""
    digits = ResidueLift(len(w), q).n_bits
    v = np.outer(w, 2.0 ** np.arange(digits) / 2).ravel()
    centre = np.arange(len(w) * (q - 1) ** 2 + 1) - v.sum()
    norm = np.sqrt((v @ v) ** 2 - (v**4).sum() + 4 * centre**2 * (v @ v))
    largest = p * (q - 1) // q
    expected = largest * norm.max(), largest * np.abs(v @ v + centre**2 - 1).max()
    assert rounding(w, p, q).scale() == pytest.approx(expected)


def test_rounding_by_remainder_is_linear_where_p_divides_q():
    Y = residues(2, 6)
    assert np.array_equal(rounded_products([4, 5], Y, 3, 6, rule="modulo"), Y @ [4, 5] % 3)
    assert not np.array_equal(rounded_products([4, 5], Y, 3, 6), Y @ [4, 5] % 3)


def test_digits_spell_the_residues():
    Y, lift = residues(3, 5), ResidueLift(3, 5)
    digits = lift.signs(Y).reshape(-1, 3, lift.n_bits)
    assert np.array_equal((digits < 0) @ [1, 2, 4], Y)
    assert np.array_equal(3.5 - digits @ [0.5, 1, 2], Y)


@pytest.mark.parametrize(
    ("w", "p", "q", "message"),
    [
        ([1, 2], 2, 0, "2 <= p <= q"),
        ([1, 2], -3, 5, "2 <= p <= q"),
        ([1, 2], 7, 5, "2 <= p <= q"),
        ([1, 5], 2, 5, "row 0, column 1 holds 5"),
        ([1, -1], 2, 5, "holds -1"),
        ([1, 0.5], 2, 5, "holds 0.5"),
        ([1, np.nan], 2, 5, "holds nan"),
        ([[1]], 2, 5, "shape"),
        ([], 2, 5, "shape"),
    ],
)
def test_strange_secrets_are_refused(w, p, q, message):
    with pytest.raises(ValueError, match=message):
        rounding(w, p, q)


def test_strange_rules_and_residues_are_refused():
    with pytest.raises(ValueError, match="`rule` must be one of"):
        rounding([1], 2, 3, rule="floor")
    with pytest.raises(ValueError, match="vector of 2 residues"):
        ResidueLift(2, 3)([[1, 2, 0]])
    with pytest.raises(ValueError, match="2 or more"):
        ResidueLift(2, 1)
    with pytest.raises(ValueError, match="1 or more"):
        ResidueLift(0, 3)


def test_distributions_draw_lifted_points():
    rng = np.random.default_rng(0)
    assert set(np.unique(uniform(5)(40, rng))) == {-1, 1}
    for lift in (Lift.quadratic(3), ResidueLift(2, 3)):
        X = lifted(lift)(40, rng).reshape(40, int(lift.n**0.5), -1)
        z = X.diagonal(axis1=1, axis2=2)
        off = ~np.eye(z.shape[1], dtype=bool)
        assert np.array_equal(X[:, off], (z[:, :, None] * z[:, None])[:, off])


@pytest.mark.grid
def test_moduli_are_integers_of_any_kind():
    w, p, q = np.array([1, 99], dtype=np.int8), np.int8(2), np.int8(100)
    lift = ResidueLift(np.int8(2), q)
    Y = np.array([[99, 98], [0, 1]], dtype=np.int8)
    expected = [(99 + 99 * 98) % 100 // 50, 99 // 50]
    assert rounded_products(w, Y, p, q).tolist() == expected
    assert rounding(w, p, q)(lift(Y)).tolist() == expected
    assert lift(np.zeros((0, 2))).shape == (0, lift.n)


def test_products_beyond_64_bits_are_refused():
    q = 2**31
    w, Y = [q - 1, q - 2], [[q - 3, q - 1], [1, q - 1]]
    expected = [(q - 1) * (sum(a * b for a, b in zip(w, y, strict=True)) % q) // q for y in Y]
    assert rounded_products(w, Y, q - 1, q).tolist() == expected
    for secret, modulus in (([1, 1, 1], q), ([1, 1], 2**40)):
        with pytest.raises(ValueError, match="exceed 64 bits"):
            rounded_products(secret, [secret], 2, modulus)


@pytest.mark.parametrize("strange", [[["1", "2"]], [[1j, 2]]])
def test_residues_are_numbers(strange):
    with pytest.raises(ValueError, match="residues are integers"):
        ResidueLift(2, 5)(strange)


def test_parity_needs_a_coordinate():
    with pytest.raises(ValueError, match="number `m` of coordinates must be 1 or more"):
        parity((), 0)
