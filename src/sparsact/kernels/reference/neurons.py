"""Products that read only the weights of active units, in the native kernels' order of additions."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.reference.gather import narrowed, row_dots, widened


class Neurons:
    """Weights, one row a unit, and a bias; with ``wide`` numbers are float32 where weights are bfloat16."""

    def __init__(self, rows: NDArray[Any], bias: NDArray[Any] | None, wide: bool) -> None:
        self._rows, self._bias = rows, bias
        self._numbers = np.dtype(np.float32) if wide else rows.dtype

    def _biases(self, size: int) -> NDArray[Any]:
        none = np.zeros(size, dtype=self._numbers)
        return widened(none if self._bias is None else self._bias)


class ReferenceSparseProduct(Neurons):
    """See :class:`sparsact.kernels.SparseProduct`."""

    def at(self, h: int, m: int, out: int, n_threads: int, most: int) -> int:
        """Fill ``out`` (m, n) from H (m, s), at addresses; how many units some input has active."""
        s, n = self._rows.shape
        H, sums = array_at(h, (m, s), self._numbers), array_at(out, (m, n), self._numbers)
        units = int(nonzero(H).any(axis=0).sum())
        if units <= most:
            for i, row in enumerate(H):
                sums[i] = narrowed(self._sum(row), sums.dtype)
        return units

    @np.errstate(over="ignore", invalid="ignore")  # native kernels do not warn
    def _sum(self, row: NDArray[Any]) -> NDArray[Any]:
        total = self._biases(self._rows.shape[1]).copy()
        for j in np.flatnonzero(nonzero(row)):
            total += widened(row[j : j + 1]) * widened(self._rows[j])
        return total


class ReferenceActiveDot(Neurons):
    """See :class:`sparsact.kernels.ActiveDot`."""

    def at(self, x: int, on: int, m: int, out: int, n_threads: int, most: int) -> int:
        """Fill ``out`` (m, s) where the numbers ``on`` (m, s) are not zero; how many units some input has active."""
        return self._fill(x, array_at(on, (m, len(self._rows)), self._numbers), out, most)

    def at_mask(self, x: int, on: int, m: int, out: int, n_threads: int, most: int) -> int:
        """The same where ``on`` is a mask of bytes."""
        return self._fill(x, array_at(on, (m, len(self._rows)), np.dtype(np.uint8)), out, most)

    @np.errstate(over="ignore", invalid="ignore")
    def _fill(self, x: int, on: NDArray[Any], out: int, most: int) -> int:
        s, n = self._rows.shape
        X, dots = array_at(x, (len(on), n), self._numbers), array_at(out, on.shape, self._numbers)
        units = int(nonzero(on).any(axis=0).sum())
        if units <= most:
            dots[:] = 0
            for i, taken in enumerate(nonzero(on)):
                products = row_dots(widened(X[i]), widened(self._rows[taken])) + self._biases(s)[taken]
                dots[i, taken] = narrowed(products, dots.dtype)
        return units


def active_counts(h: int, m: int, s: int, size: int) -> tuple[int, int]:
    """Numbers of H (m, s) that are not zero, and columns that hold one; ``size`` is that of a number in bytes."""
    numbers: dict[int, Any] = {8: np.float64, 4: np.float32, 2: np.uint16, 1: np.uint8}
    on = nonzero(array_at(h, (m, s), np.dtype(numbers[size])))
    return int(on.sum()), int(on.any(axis=0).sum())


def nonzero(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where numbers are neither 0 nor -0; what is no number counts."""
    on: NDArray[np.bool_] = (values & 0x7FFF if values.dtype == np.uint16 else values) != 0
    return on


def array_at(address: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array whose memory begins at an address."""
    memory = (ctypes.c_char * max(1, shape[0] * shape[1] * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype=dtype, buffer=memoryview(memory))
