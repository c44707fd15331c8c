"""Elimination over GF(2) and modulo a prime, against trying everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparsact import kernels
from sparsact.hardness import InconsistentLabelsError, solve_binary, solve_modulo
from sparsact.hardness.elimination import reduce_rows
from sparsact.kernels import dispatch
from sparsact.kernels.packed_bits import packed_rows, unpacked_rows

BACKENDS = ["reference"] if dispatch.native is None else ["reference", "native"]


def all_vectors(n, p=2):
    return np.indices((p,) * n).reshape(n, -1).T


def solutions(A, b, p=2):
    """Every solution, by trying all vectors."""
    vectors = all_vectors(A.shape[1], p)
    return vectors[(vectors @ A.T % p == b).all(axis=1)]


@st.composite
def systems(draw, p=2):
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    A = draw(arrays(np.int64, shape, elements=st.integers(0, p - 1)))
    b = draw(arrays(np.int64, shape[0], elements=st.integers(0, p - 1)))
    if draw(st.booleans()):  # a system that has a solution
        b = A @ draw(arrays(np.int64, shape[1], elements=st.integers(0, p - 1))) % p
    return A, b


@pytest.mark.parametrize("backend", BACKENDS)
def test_binary_systems_against_brute_force(backend):
    @given(systems())
    def against_brute_force(system):
        A, b = system
        every = solutions(A, b)
        if not len(every):
            with pytest.raises(InconsistentLabelsError, match="has no solution"):
                solve_binary(A, b)
            return
        found = solve_binary(A, b)
        assert (every == found.values).all(axis=1).any()
        assert len(every) == 2 ** (A.shape[1] - found.rank)
        assert found.unique == (len(every) == 1)

    with kernels.using(backend):
        against_brute_force()


@pytest.mark.parametrize("p", [2, 3, 5])
def test_systems_modulo_a_prime_against_brute_force(p):
    @given(systems(p))
    def against_brute_force(system):
        A, b = system
        every = solutions(A, b, p)
        if not len(every):
            with pytest.raises(InconsistentLabelsError, match="has no solution"):
                solve_modulo(A, b, p)
            return
        found = solve_modulo(A, b, p)
        assert (every == found.values).all(axis=1).any()
        assert len(every) == p ** (A.shape[1] - found.rank)

    against_brute_force()


@pytest.mark.parametrize(("M", "N"), [(1, 1), (70, 63), (66, 64), (150, 131), (90, 200)])
def test_more_than_one_word(M, N):
    rng = np.random.default_rng([M, N])
    A, s = rng.integers(2, size=(M, N)), rng.integers(2, size=N)
    before = A.copy()
    found = solve_binary(A.astype(bool), A @ s % 2)
    assert np.array_equal(A @ found.values % 2, A @ s % 2)
    assert np.array_equal(A, before)
    if found.unique:
        assert np.array_equal(found.values, s)
    assert found.word_operations <= found.rank * M * (N // 64 + 1)


def test_words_before_the_pivot_are_not_added():
    A = np.zeros((2, 100), dtype=bool)
    A[:, 70] = True
    assert solve_binary(A, [1, 1]).word_operations == 1
    A[:, 3] = True
    assert solve_binary(A, [1, 1]).word_operations == 2


def test_reduced_rows_are_in_echelon_form():
    rng = np.random.default_rng(3)
    bits = rng.integers(2, size=(40, 90))
    bits[:, 7] = bits[:, 2] ^ bits[:, 5]  # a column that gets no pivot
    rows = packed_rows(bits)
    pivots, _ = reduce_rows(rows, 75)
    reduced = unpacked_rows(rows, 90)
    assert 7 not in pivots
    assert pivots == sorted(pivots)
    assert np.array_equal(reduced[: len(pivots), pivots], np.eye(len(pivots)))
    assert not reduced[len(pivots) :, :75].any()


def test_a_large_prime_does_not_overflow():
    prime = 2**31 - 1
    rng = np.random.default_rng(5)
    A, w = rng.integers(prime, size=(9, 6)), rng.integers(prime, size=6)
    b = [int(sum(int(a) * int(x) for a, x in zip(row, w, strict=True)) % prime) for row in A]
    assert np.array_equal(solve_modulo(A, b, prime).values, w)


def test_bad_systems():
    with pytest.raises(ValueError, match="must agree on M"):
        solve_binary([[1, 0]], [1, 0])
    with pytest.raises(ValueError, match="holds bits 0 and 1; row 1, column 2: 3"):
        solve_binary([[1, 0], [0, 1]], [1, 3])
    with pytest.raises(ValueError, match="must agree on M"):
        solve_modulo([[1, 0]], [1, 0], 3)
    with pytest.raises(ValueError, match="must hold integers"):
        solve_modulo([[0.5]], [1], 3)
    for composite in (4, 9, 35):
        with pytest.raises(ValueError, match=f"must be prime; {composite} = "):
            solve_modulo([[1]], [1], composite)
    for strange in (-3, 0, 1, 2**31):
        with pytest.raises(ValueError, match="must be a prime from 2"):
            solve_modulo([[1]], [1], strange)
