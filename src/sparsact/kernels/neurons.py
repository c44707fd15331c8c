"""Kernels of feed-forward blocks: products that read only the weights of units that are active.

A unit is active for an input where its number is not zero; what is no number is active, so that it shows. Numbers are
float64, float32, float16, or bfloat16 given as uint16; halves are added in float32 and rounded at the end. The order
of every sum is fixed and no input's depends on the others: every kernel, instruction set, number of threads and batch
gives the same bits. A gated block is, with a mask that is its own activations::

    gate = f(x @ G.T + a)
    ActiveDot(W, b)(x, gate, up)
    SparseProduct(V, c)(gate * up, out)

Both kernels hold their weights, so that a call passes three addresses and three numbers: what a layer of a model
calls is ``at``, with ``Tensor.data_ptr``. The kernels are chosen when the object is made.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.gather import narrowed, row_dots, widened

Array = NDArray[Any]
INPUTS: Final = np.float32, np.uint16, np.float16  # of a screen, by kind
_NUMBERS: Final = tuple(map(np.dtype, (np.float64, np.float32, np.float16, np.uint16)))


class SparseProduct:
    r"""The down layer of a block, :math:`c + \sum_{j:\, h_{ij} \neq 0} h_{ij} v_j`, reading only active units.

    Parameters
    ----------
    V : ndarray of shape (s, n)
        One row a unit, C-contiguous: the transpose of ``nn.Linear.weight``. It is held, not copied.
    bias : ndarray of shape (n,), optional
        c, of the dtype of the numbers; held, not copied.
    numbers : dtype, optional
        Type of H, bias and result: that of ``V``, or float32 where ``V`` is bfloat16.

    Attributes
    ----------
    at : callable
        ``at(h, m, out, n_threads, most)``: the call with addresses of C-contiguous arrays, unchecked.

    Notes
    -----
    Reads a row once for all inputs of 64 that have its unit active: ``entries * n`` multiplications and, for 64 inputs,
    ``units * n`` weights, for the numbers of entries that are not zero and of units that some input has active.

    Examples
    --------
    >>> V = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    >>> out = np.empty((1, 2))
    >>> SparseProduct(V)(np.array([[3.0, 0.0, 1.0]]), out), out
    (2, array([[103., 206.]]))
    """

    def __init__(self, V: Array, bias: Array | None = None, *, numbers: DTypeLike | None = None) -> None:
        self._numbers = _checked(V, bias, V.shape[-1], numbers)
        self._shape = V.shape
        held = dispatch.chosen.SparseProduct(V, bias, self._numbers != V.dtype)
        self.at: Callable[[int, int, int, int, int], int] = held.at

    def __call__(self, H: Array, out: Array, *, n_threads: int = 1, most: int | None = None) -> int:
        """Fill ``out`` (m, n) from H (m, s), and return how many numbers of H are not zero.

        If they are more than ``most``, nothing else is read and ``out`` is left as it is: a dense product is faster.

        Raises
        ------
        ValueError
            If an array is not C-contiguous, or does not have the shape and dtype that the weights require.
        """
        s, n = self._shape
        _check("H", H, (len(H), s), self._numbers)
        _check("out", out, (len(H), n), self._numbers)
        return self.at(H.ctypes.data, len(H), out.ctypes.data, n_threads, H.size if most is None else most)


class ActiveDot:
    r"""The up layer of a block, :math:`\langle w_j, x_i \rangle + b_j`, for active units alone; 0 for the others.

    The up layer of a gated block, whose gate says which units are active, or of a block after its screen.

    Parameters
    ----------
    W : ndarray of shape (s, n)
        One row a unit, C-contiguous: ``nn.Linear.weight``. It is held, not copied.
    bias : ndarray of shape (s,), optional
        b, of the dtype of the numbers; held, not copied.
    numbers : dtype, optional
        Type of X, bias and result: that of ``W``, or float32 where ``W`` is bfloat16.

    Attributes
    ----------
    at, at_mask : callable
        ``at(x, on, m, out, n_threads, most)``: the call with addresses of C-contiguous memory instead of arrays, for
        numbers and for a mask of bytes. Nothing is checked.
    at_screen : callable
        ``at_screen(screen, x, m, out, n_threads, most)``: the units that a screen of
        :func:`~sparsact.kernels.screen.screen` does not prove off; not for float64.

    Notes
    -----
    Cost as of :class:`SparseProduct`. Numbers that say which units are active are scanned as they are, which at one
    input saves writing and reading a mask.

    Examples
    --------
    >>> W = np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    >>> out = np.empty((1, 3))
    >>> ActiveDot(W)(np.array([[3.0, 1.0]]), np.array([[0.0, -7.0, 0.0]]), out), out
    (1, array([[ 0., 50.,  0.]]))
    """

    def __init__(self, W: Array, bias: Array | None = None, *, numbers: DTypeLike | None = None) -> None:
        self._numbers = _checked(W, bias, len(W), numbers)
        self._shape = W.shape
        held = dispatch.chosen.ActiveDot(W, bias, self._numbers != W.dtype)
        self.at: Callable[[int, int, int, int, int, int], int] = held.at
        self.at_mask: Callable[[int, int, int, int, int, int], int] = held.at_mask
        self.at_screen: Callable[[Any, int, int, int, int, int], int] = held.at_screen

    def __call__(self, X: Array, on: Array, out: Array, *, n_threads: int = 1, most: int | None = None) -> int:
        """Fill ``out`` (m, s) from X (m, n), and return the number of products.

        ``on`` (m, s) are numbers of the dtype of X, active where they are not zero, or a mask, bool or uint8. ``most``
        and errors as for :class:`SparseProduct`.
        """
        s, n = self._shape
        masked = on.dtype in (np.bool_, np.uint8)
        _check("X", X, (len(X), n), self._numbers)
        _check("on", on, (len(X), s), on.dtype if masked else self._numbers)
        _check("out", out, (len(X), s), self._numbers)
        run = self.at_mask if masked else self.at
        return run(X.ctypes.data, on.ctypes.data, len(X), out.ctypes.data, n_threads, on.size if most is None else most)


def _checked(rows: Array, bias: Array | None, size: int, numbers: DTypeLike | None) -> np.dtype[Any]:
    """The dtype of inputs and biases for these weights."""
    if rows.ndim != 2 or rows.dtype not in _NUMBERS or not rows.flags.c_contiguous:
        raise ValueError(
            "weights are a C-contiguous matrix of float64, float32, float16, or bfloat16 viewed as uint16; "
            f"got {rows.dtype} of shape {rows.shape}: pass np.ascontiguousarray of such a matrix."
        )
    chosen = rows.dtype if numbers is None else np.dtype(numbers)
    if chosen != rows.dtype and not (rows.dtype == np.uint16 and chosen == np.float32):
        raise ValueError(
            f"inputs and biases for weights of {rows.dtype} must be {rows.dtype} too, or float32 for bfloat16 "
            f"(uint16); got {chosen}: leave `numbers` out."
        )
    if bias is not None:
        _check("bias", bias, (size,), chosen)
    return chosen


def _check(name: str, array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError(
            f"`{name}` is C-contiguous, {dtype} of shape {shape}, for these weights; got {array.dtype} of shape "
            f"{array.shape}{'' if array.flags.c_contiguous else ', not contiguous'}: convert it with "
            "np.ascontiguousarray."
        )


class _Neurons:
    """Weights, one row a unit, and a bias; with ``wide`` numbers are float32 where weights are bfloat16."""

    def __init__(self, rows: Array, bias: Array | None, wide: bool) -> None:
        self._rows, self._bias = rows, bias
        self._numbers = np.dtype(np.float32) if wide else rows.dtype

    def _biases(self, size: int) -> Array:
        none = np.zeros(size, dtype=self._numbers)
        return widened(none if self._bias is None else self._bias)


@dispatch.kernel
class _SparseProduct(_Neurons):
    def at(self, h: int, m: int, out: int, n_threads: int, most: int) -> int:
        s, n = self._rows.shape
        H, sums = array_at(h, (m, s), self._numbers), array_at(out, (m, n), self._numbers)
        entries = int(nonzero(H).sum())
        if entries <= most:
            for i, row in enumerate(H):
                sums[i] = narrowed(self._sum(row), sums.dtype)
        return entries

    @np.errstate(over="ignore", invalid="ignore")  # native kernels do not warn
    def _sum(self, row: Array) -> Array:
        total = self._biases(self._rows.shape[1]).copy()
        for j in np.flatnonzero(nonzero(row)):
            total += widened(row[j : j + 1]) * widened(self._rows[j])
        return total


@dispatch.kernel
class _ActiveDot(_Neurons):
    def at(self, x: int, on: int, m: int, out: int, n_threads: int, most: int) -> int:
        return self._fill(x, array_at(on, (m, len(self._rows)), self._numbers), out, most)

    def at_mask(self, x: int, on: int, m: int, out: int, n_threads: int, most: int) -> int:
        return self._fill(x, array_at(on, (m, len(self._rows)), np.uint8), out, most)

    def at_screen(self, screen: Any, x: int, m: int, out: int, n_threads: int, most: int) -> int:
        mask, counts = np.empty((m, len(self._rows)), dtype=np.uint8), np.empty(m, dtype=np.int64)
        screen.survivors(x, INPUTS.index(self._numbers.type), m, mask.ctypes.data, counts.ctypes.data, n_threads)
        return self._fill(x, mask, out, most)

    @np.errstate(over="ignore", invalid="ignore")
    def _fill(self, x: int, on: Array, out: int, most: int) -> int:
        s, n = self._rows.shape
        X, dots = array_at(x, (len(on), n), self._numbers), array_at(out, on.shape, self._numbers)
        entries = int(nonzero(on).sum())
        if entries <= most:
            dots[:] = 0
            for i, taken in enumerate(nonzero(on)):
                products = row_dots(widened(X[i]), widened(self._rows[taken])) + self._biases(s)[taken]
                dots[i, taken] = narrowed(products, dots.dtype)
        return entries


def nonzero(values: Array) -> NDArray[np.bool_]:
    """Whether numbers are neither 0 nor -0; NaN counts as nonzero."""
    on: NDArray[np.bool_] = (values & 0x7FFF if values.dtype == np.uint16 else values) != 0
    return on


def array_at(address: int, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """The array whose memory begins at an address."""
    memory = (ctypes.c_char * max(1, prod(shape) * np.dtype(dtype).itemsize)).from_address(address)
    return np.ndarray(shape, dtype=dtype, buffer=memoryview(memory))
