"""Choose native or reference kernels, once, and call the chosen ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, Masks, n_subsets, n_words
from sparsact.kernels import reference

native: Any
try:
    native = import_module("sparsact.kernels._native")
except ImportError:  # built without a C++ compiler
    native = None

_chosen: Any = reference


def backend() -> str:
    """Name of the kernels in use: ``"native"`` or ``"reference"``.

    Returns
    -------
    name : str
        One of the two.
    """
    return "reference" if _chosen is reference else "native"


def max_threads() -> int:
    """Threads that a kernel takes when it is left to OpenMP; the reference has one."""
    return 1 if _chosen is reference else int(native.max_threads())


def description() -> str:
    """Kernels in use and the instruction set they run on, for people.

    Returns
    -------
    text : str
        Such as ``native (avx512)``.
    """
    return "reference (NumPy)" if _chosen is reference else f"native ({native.isa()})"


def chosen() -> Any:
    """The module of the kernels in use."""
    return _chosen


def _choose(name: str) -> None:
    global _chosen
    if name not in ("", "native", "reference"):
        raise ValueError(f"SPARSACT_KERNELS={name!r} is neither 'native' nor 'reference'.")
    if name == "native" and native is None:
        raise ImportError(
            "SPARSACT_KERNELS=native, but sparsact was built without a C++ compiler: "
            "install one and reinstall, or unset SPARSACT_KERNELS."
        )
    _chosen = reference if name == "reference" or native is None else native


@contextmanager
def using(name: str, isa: str | None = None) -> Iterator[None]:
    """Run a block on the named kernels (and instruction set); for tests and benchmarks.

    Parameters
    ----------
    name : {"native", "reference"}
        The kernels.
    isa : str, optional
        An instruction set of the native ones.

    Yields
    ------
    None
        Kernels are as before afterwards.
    """
    before, before_isa = backend(), None if native is None else native.isa()
    try:
        _choose(name)
        if isa is not None:
            native.use_isa(isa)
        yield
    finally:
        _choose(before)
        if native is not None:
            native.use_isa(before_isa)


def walsh_hadamard(table: NDArray[Any], *, n_threads: int = 1) -> None:
    """Transform every row of ``table`` (rows, 2**n), C-contiguous, in place and unnormalised.

    Parameters
    ----------
    table : ndarray of shape (rows, 2**n)
        Changed in place.
    n_threads : int
        Threads over rows.
    """
    _chosen.walsh_hadamard(table, n_threads)


def pack_columns(X: NDArray[Any], zero: float, one: float) -> tuple[NDArray[np.uint64], int]:
    """Bits of a table of two values, one packed column a coordinate, and the first element that is neither.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Any strides; bool, int8, uint8, int32, int64, float32 or float64.
    zero, one : float
        The values that stand for bit 0 and bit 1.

    Returns
    -------
    columns : ndarray of shape (n, ceil(m / 64)), uint64
        Bit ``r % 64`` of word ``r // 64`` of column ``j`` is ``X[r, j] == one``; padding bits are 0.
    bad : int
        Flat index ``r * n + j`` of the first element (row by row) that equals neither value, or -1.
    """
    m, n = X.shape
    columns = np.empty((n, _n_words(m)), dtype=np.uint64)
    bad = _chosen.pack_columns(X.view(np.uint8) if X.dtype == np.bool_ else X, zero, one, columns)
    return columns, bad


def transpose_bits(columns: NDArray[np.uint64], n_rows: int) -> NDArray[np.uint64]:
    """Packed rows (n_rows, ceil(n / 64)) of packed columns (n, ceil(n_rows / 64)); its own inverse, roles swapped.

    Parameters
    ----------
    columns : ndarray of shape (n, ceil(n_rows / 64)), uint64
        Packed columns.
    n_rows : int
        Rows that count.

    Returns
    -------
    rows : ndarray of shape (n_rows, ceil(n / 64)), uint64
        Packed rows.
    """
    rows = np.empty((n_rows, _n_words(len(columns))), dtype=np.uint64)
    _chosen.transpose_bits(columns, rows)
    return rows


def parity_counts(
    columns: NDArray[np.uint64], planes: NDArray[np.uint64], masks: Masks, *, n_threads: int = 1
) -> NDArray[np.int64]:
    """Rows of each plane at which a subset's bits have odd parity: popcount of ``plane & xor of columns``.

    Parameters
    ----------
    columns : ndarray of shape (n, words), uint64
        Packed columns, C-contiguous.
    planes : ndarray of shape (P, words), uint64
        Sets of rows, C-contiguous.
    masks : ndarray of shape (N, W), uint64
        Subsets, C-contiguous, in any order. Fastest when neighbours share their highest (or their lowest) coordinates.
    n_threads : int
        Threads over the subsets.

    Returns
    -------
    counts : ndarray of shape (P, N), int64
    """
    counts = np.empty((len(planes), len(masks)), dtype=np.int64)
    _chosen.parity_counts(columns, planes, masks, counts, n_threads)
    return counts


def evaluate(
    X: NDArray[np.float64], masks: Masks, coefficients: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    """Values (m, T) of T polynomials, ``sum_S coefficients[S, t] * prod_{i in S} X[:, i]``; X is (m, n), C-contiguous.

    The same bits on every kernel, instruction set and number of threads: a monomial is multiplied from its highest
    coordinate down, and monomials are added in the order of ``masks``.

    Parameters
    ----------
    X : ndarray of shape (m, n), float64
        Rows, C-contiguous.
    masks : ndarray of shape (N, words), uint64
        The subsets S.
    coefficients : ndarray of shape (N, T), float64
        A column a polynomial.
    n_threads : int
        Threads over rows.

    Returns
    -------
    values : ndarray of shape (m, T), float64
        A column a polynomial.
    """
    values = np.empty((len(X), coefficients.shape[1]))
    _chosen.evaluate(X, masks, coefficients, values, n_threads)
    return values


def evaluate_packed(
    columns: NDArray[np.uint64], n_rows: int, masks: Masks, coefficients: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    """:func:`evaluate` at ``n_rows`` points of the cube, given as packed columns (bit 1 is sign -1); the same bits.

    Parameters
    ----------
    columns : ndarray of shape (n, ceil(n_rows / 64)), uint64
        Packed columns.
    n_rows : int
        m.
    masks : ndarray of shape (N, words), uint64
        The subsets S.
    coefficients : ndarray of shape (N, T), float64
        A column a polynomial.
    n_threads : int
        Threads over rows.

    Returns
    -------
    values : ndarray of shape (m, T), float64
        A column a polynomial.
    """
    values = np.empty((n_rows, coefficients.shape[1]))
    _chosen.evaluate_packed(columns, masks, coefficients, values, n_threads)
    return values


def symmetric_differences(masks: Masks) -> tuple[Masks, NDArray[np.int32]]:
    """All distinct symmetric differences of two subsets of a family, and where each pair's stands.

    Parameters
    ----------
    masks : ndarray of shape (D, W), uint64
        Distinct subsets, C-contiguous.

    Returns
    -------
    unique : ndarray of shape (N, W), uint64
        Distinct masks ``S xor T``, in the order of the numbers they spell (the last word is the most significant).
    position : ndarray of shape (D, D), int32
        Symmetric; ``unique[position[a, b]] == masks[a] ^ masks[b]``.
    """
    position = np.empty((len(masks), len(masks)), dtype=np.int32)
    return _chosen.symmetric_differences(masks, position), position


def subsets_in_order(n: int, size: int) -> Masks:
    """All subsets of n coordinates with at most ``size`` members, in the order of the numbers they spell, (N, W).

    They are the ``unique`` of :func:`symmetric_differences` for the family of all subsets with at most ``size / 2``.
    """
    masks = np.empty((n_subsets(n, size), n_words(n)), dtype=np.uint64)
    _chosen.subsets_in_order(n, size, masks)
    return masks


def ranked_gram(
    masks: Masks, moments: NDArray[np.float64], n: int, size: int, *, n_threads: int = 1
) -> NDArray[np.float64]:
    """The moment of every pair's symmetric difference: (D, D), symmetric.

    Parameters
    ----------
    masks : ndarray of shape (D, W), uint64
        Subsets, C-contiguous; no two differ in more than ``size`` coordinates.
    moments : ndarray of shape (N,), float64
        One for each subset of :func:`subsets_in_order`.
    """
    gram = np.empty((len(masks), len(masks)))
    _chosen.ranked_gram(masks, moments, n, size, gram, n_threads)
    return gram


def exponent_range(values: NDArray[np.float64]) -> tuple[int, int]:
    """(low, high): every value is a multiple of 2**low and below 2**high in magnitude; (0, 0) if all are zero.

    Parameters
    ----------
    values : ndarray, float64
        Finite numbers.

    Returns
    -------
    low, high : int
        Exponents of 2.
    """
    low, high = _chosen.exponent_range(values)
    return low, high


def add_products(
    limbs: NDArray[np.int64],
    base: int,
    index: NDArray[np.uint64] | None,
    a: NDArray[np.float64],
    b: NDArray[np.float64] | None,
    c: NDArray[np.float64] | None = None,
) -> None:
    """Add the exact a[i] * b[i] * c[i] to column index[i] (None: column i) of ``limbs`` (L, cells), in place.

    Limb l counts units of 2**(32 * (base + l)); the caller has made room for every digit of every product.

    Parameters
    ----------
    limbs : ndarray of shape (L, cells), int64
        Changed in place.
    base : int
        Place of the lowest limb.
    index : ndarray of shape (m,), uint64, or None
        Columns of ``limbs``.
    a : ndarray of shape (m,), float64
        First factors.
    b : ndarray of shape (m,), float64, or None
        Second factors; None for ones.
    c : ndarray of shape (m,), float64, or None
        Third factors, of which there are none without second ones; None for ones.
    """
    _chosen.add_products(limbs, base, index, a, b, c)


def _n_words(m: int) -> int:
    return -(-m // WORD)


_choose(os.environ.get("SPARSACT_KERNELS", ""))
