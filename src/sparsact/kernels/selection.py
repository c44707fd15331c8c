"""Kernels that choose the largest values of each row, exactly and with ties broken by place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[Any]
Places = NDArray[np.int64]


def top_k(values: Array, k: int, *, absolute: bool = False, n_threads: int = 1) -> Places:
    """Find the places (m, k), in ascending order, of the k largest values of each row; the first of equal ones wins.

    Parameters
    ----------
    values : ndarray of shape (m, t)
        float32 or float64, C-contiguous, without NaN.
    k : int
        1 to t.
    absolute : bool
        Rank by absolute value.

    Notes
    -----
    A sample of a row says between which two of its values the k-th largest should lie; one pass writes these out, and
    bisection of the floats finds it among them. About ten passes over a row that is in the cache, whatever k.
    """
    places = np.empty((len(values), k), dtype=np.int64)
    dispatch.chosen.top_k(values, k, absolute, places, n_threads)
    return places


@dispatch.kernel
def _top_k(values: Array, k: int, absolute: bool, places: Places, n_threads: int) -> None:
    ranked = np.argsort(-(np.abs(values) if absolute else values), axis=1, kind="stable")
    places[:] = np.sort(ranked[:, :k], axis=1)


def top_k_dot(values: Array, A: Array, k: int, *, absolute: bool = False, n_threads: int = 1) -> Array:
    """Multiply the k largest values of each row by their columns of A, (m, T), without storing their places.

    Parameters
    ----------
    values : ndarray of shape (m, t)
        As for :func:`top_k`.
    A : ndarray of shape (T, t)
        Has the dtype of ``values``; C-contiguous.

    Notes
    -----
    Sums are taken in the dtype of ``values``, in 64 parts: the same bits on every instruction set and number of
    threads; the reference agrees up to rounding. A pass over the row for each target: for many targets
    :func:`top_k_masked` and a product of matrices are faster.
    """
    dots = np.empty((len(values), len(A)), dtype=values.dtype)
    dispatch.chosen.top_k_dot(values, A, k, absolute, dots, n_threads)
    return dots


@dispatch.kernel
def _top_k_dot(values: Array, A: Array, k: int, absolute: bool, dots: Array, n_threads: int) -> None:
    places = np.empty((len(values), k), dtype=np.int64)
    _top_k(values, k, absolute, places, n_threads)
    chosen = np.take_along_axis(values, places, axis=1)
    for target, row in enumerate(A):
        dots[:, target] = np.sum(chosen * row[places], axis=1)


def top_k_masked(values: Array, k: int, *, absolute: bool = False, n_threads: int = 1) -> Array:
    """Set all but the k largest values of each row to 0; arguments and choice as for :func:`top_k`."""
    masked = np.empty_like(values)
    dispatch.chosen.top_k_masked(values, k, absolute, masked, n_threads)
    return masked


@dispatch.kernel
def _top_k_masked(values: Array, k: int, absolute: bool, masked: Array, n_threads: int) -> None:
    places = np.empty((len(values), k), dtype=np.int64)
    _top_k(values, k, absolute, places, n_threads)
    masked[:] = 0
    np.put_along_axis(masked, places, np.take_along_axis(values, places, axis=1), axis=1)
