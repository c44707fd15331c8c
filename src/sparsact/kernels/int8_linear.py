r"""Kernels of linear layers with int8 weights, whose inputs are quantised as they come, by torch's rules.

The weights of output j are :math:`s_j w_j` for int8 numbers w. The numbers of a row share one scale and zero point,
chosen for 7 bits as ``torch.ao.quantization.quantize_dynamic`` chooses them for a call, so that the outputs of a row
equal to the bit what torch's engines ``fbgemm`` and ``x86`` compute for that row alone:

.. math:: y_j = \mathrm{fma}\Bigl(\sum_k (q_k - z)\, w_{jk},\; s\, s_j,\; b_j\Bigr), \qquad
          q_k = \max\bigl(0, \mathrm{rint}(\mathrm{fma}(x_k, 1 / s, z))\bigr).

Sums hold integers and are exact: every kernel, instruction set, number of threads and order gives the same bits, and a
code equal to z adds nothing, whichever activation it comes from. If a number of a row is not finite, all its outputs
are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.neurons import array_at

Singles = NDArray[np.float32]
INT8_BLOCK: Final = 64  # bytes that rows of weights are filled up to
TILE: Final = 16  # rows of a tile
LARGE_PAGE: Final = 1 << 21
MAX_ADDED: Final = 65_535  # products of 7 and 8 bits, less products with the zero point, that fit in 32 bits
SMALLEST_SCALE: Final = np.float32(6.1e-5)  # of inputs, in torch
ROUNDING: Final = np.float32(12_582_912)


class Int8Linear:
    r"""Products of float32 inputs with int8 weights: rows :math:`w_j` of outputs, or rows :math:`v_i` of inputs.

    Parameters
    ----------
    weights : ndarray of shape (t, n), int8
        One row per output for :attr:`rows`, one row per input for :attr:`columns`. They are copied, with rows filled up
        to ``INT8_BLOCK`` bytes, unless ``n`` is given. With ``n`` also from :func:`tiled`, for :attr:`rows` alone,
        which is then fastest.
    scale : ndarray of shape (outputs,), float32
        Scale of each output's weights.
    bias : ndarray of shape (outputs,), float32, optional
        By default zeros.
    n : int, optional
        Columns in use of contiguous weights that are filled up already, with zeros: they are used as they are.

    Attributes
    ----------
    filled : ndarray of shape (t, width), int8
        The weights, filled up.
    rows : callable
        ``rows(x, m, out, n_threads)`` fills ``out`` (m, t) from x (m, n): reads all weights.
    rows_at : callable
        ``rows_at(x, mask, m, out, n_threads)``: the outputs at which ``mask`` (m, t), uint8, is not 0, and 0 elsewhere.
        Reads the rows of these.
    columns : callable
        ``columns(h, m, out, n_threads)`` fills ``out`` (m, n) from h (m, t), and returns how many codes differ from the
        zero point: their rows alone are read.

    Notes
    -----
    Arrays of the calls are addresses of C-contiguous float32 memory, such as ``Tensor.data_ptr``; nothing is checked.

    Examples
    --------
    >>> W = np.array([[1, -2, 3], [0, 127, 5]], dtype=np.int8)
    >>> x, out = np.array([[127.0, 0.0, 2.0]], dtype=np.float32), np.empty((1, 2), dtype=np.float32)
    >>> one = np.array([1.0, 0.5], dtype=np.float32)
    >>> Int8Linear(W, one).rows(x.ctypes.data, 1, out.ctypes.data, 1)
    >>> out
    array([[133.,   5.]], dtype=float32)
    >>> Int8Linear(W.T, one).columns(x.ctypes.data, 1, out.ctypes.data, 1), out
    (2, array([[133.,   5.]], dtype=float32))
    """

    def __init__(
        self, weights: NDArray[np.int8], scale: Singles, bias: Singles | None = None, n: int | None = None
    ) -> None:
        filled = weights
        if n is None:
            t, n = weights.shape
            filled = in_large_pages(t, -(-n // INT8_BLOCK) * INT8_BLOCK)
            filled[:, :n], filled[:, n:] = weights, 0
        added = np.zeros_like(scale) if bias is None else bias
        held = dispatch.chosen.Int8Linear(filled.reshape(len(filled), -1), scale, added, n, filled.ndim == 4)
        self.filled = filled
        self.nbytes = filled.nbytes + scale.nbytes
        self.rows: Callable[[int, int, int, int], None] = held.rows
        self.rows_at: Callable[[int, int, int, int, int], None] = held.rows_at
        self.columns: Callable[[int, int, int, int], int] = held.columns


def in_large_pages(t: int, width: int) -> NDArray[np.int8]:
    """Memory for a matrix, from the start of a large page if it fills two of them."""
    size = t * width
    if size < 2 * LARGE_PAGE:
        return np.empty((t, width), dtype=np.int8)
    memory = np.empty(size + LARGE_PAGE, dtype=np.int8)
    start = -memory.ctypes.data % LARGE_PAGE
    return memory[start : start + size].reshape(t, width)


def tiled(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of bytes (t, width) in tiles of 16, four bytes of each row side by side: (tiles, width / 4, 16, 4).

    A last tile is filled up with zeros.

    Examples
    --------
    >>> tiles = tiled(np.arange(24, dtype=np.int8).reshape(3, 8))
    >>> tiles.shape, tiles[0, 1, 2].tolist()
    ((1, 2, 16, 4), [20, 21, 22, 23])
    """
    t, width = rows.shape
    tiles = in_large_pages(-(-t // TILE), TILE * width).view(np.uint32).reshape(-1, width // 4, TILE)
    filled = np.zeros((len(tiles) * TILE, width // 4), dtype=np.uint32)
    filled[:t] = rows.view(np.uint32)
    tiles[:] = filled.reshape(-1, TILE, width // 4).swapaxes(1, 2)
    return tiles.view(rows.dtype).reshape(-1, width // 4, TILE, 4)


def untiled(weights: NDArray[Any], t: int) -> NDArray[Any]:
    """The rows that :func:`tiled` arranged; rows are returned as they are."""
    if weights.ndim == 2:
        return weights
    return np.ascontiguousarray(weights.swapaxes(1, 2)).reshape(len(weights) * TILE, -1)[:t]


class IntegerLinear:
    """What the reference kernels of integer weights share: arrays at addresses around ``_outputs``."""

    _weights: NDArray[np.int64]  # (t, n)
    _scale: Singles
    _bias: Singles

    def rows(self, x: int, m: int, out: int, n_threads: int) -> None:
        """Outputs (m, t) of inputs (m, n)."""
        t, n = self._weights.shape
        array_at(out, (m, t), np.float32)[:] = self._outputs(array_at(x, (m, n), np.float32), self._weights.T)[0]

    def rows_at(self, x: int, mask: int, m: int, out: int, n_threads: int) -> None:
        """The same where the mask (m, t) is not 0, and 0 elsewhere."""
        t = len(self._weights)
        self.rows(x, m, out, n_threads)
        outputs = array_at(out, (m, t), np.float32)
        outputs[(array_at(mask, (m, t), np.uint8) == 0) & ~np.isnan(outputs)] = 0

    def columns(self, h: int, m: int, out: int, n_threads: int) -> int:
        """Outputs (m, n) of inputs (m, t), and how many codes differ from that of 0."""
        t, n = self._weights.shape
        array_at(out, (m, n), np.float32)[:], entries = self._outputs(array_at(h, (m, t), np.float32), self._weights)
        return entries

    def _outputs(self, X: Singles, weights: NDArray[np.int64]) -> tuple[Singles, int]:
        """Outputs of inputs (m, inputs) for weights (inputs, outputs), and how many codes differ from that of 0."""
        raise NotImplementedError

    def _scaled(self, sums: NDArray[np.int64], scale: Singles) -> Singles:
        """Sums (m, outputs) times the scales of inputs (m,) and of weights (outputs,), plus the bias.

        A product of scales that overflows counts as the largest float, so that a sum of 0 adds nothing.
        """
        with np.errstate(over="ignore"):
            scales = np.minimum(scale[:, None] * self._scale, np.finfo(np.float32).max)
        return fused(sums.astype(np.float32), scales, self._bias)


@dispatch.kernel
class _Int8Linear(IntegerLinear):
    def __init__(self, weights: NDArray[np.int8], scale: Singles, bias: Singles, n: int, in_tiles: bool) -> None:
        rows = untiled(weights.reshape(len(weights), -1, TILE, 4), len(scale)) if in_tiles else weights
        self._weights, self._scale, self._bias = rows[:, :n].astype(np.int64), scale, bias

    def _outputs(self, X: Singles, weights: NDArray[np.int64]) -> tuple[Singles, int]:
        codes, scale, zero_point = quantize_inputs(X)
        centred = codes.astype(np.int64) - zero_point[:, None]
        return self._scaled(centred @ weights, scale), int(np.count_nonzero(centred))


def quantize_inputs(X: Singles) -> tuple[NDArray[np.uint8], Singles, NDArray[np.int32]]:
    """Codes of rows, their scales and zero points: a number is about ``scale * (code - zero_point)``.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32
        Inputs, C-contiguous.

    Returns
    -------
    codes : ndarray of shape (m, n), uint8
        At most 128.
    scale : ndarray of shape (m,), float32
        NaN for a row with a number that is not finite; its codes and zero point are 0.
    zero_point : ndarray of shape (m,), int32
        From 0 to 127.
    """
    codes = np.empty(X.shape, dtype=np.uint8)
    scale, zero_point = np.empty(len(X), dtype=np.float32), np.empty(len(X), dtype=np.int32)
    dispatch.chosen.quantize_inputs(X, codes, scale, zero_point)
    return codes, scale, zero_point


@dispatch.kernel
def _quantize_inputs(X: Singles, codes: NDArray[np.uint8], scale: Singles, zero_point: NDArray[np.int32]) -> None:
    codes[:], scale[:], zero_point[:] = 0, np.nan, 0
    for i, row in enumerate(X):
        least, largest = np.float32(row.min(initial=0)), np.float32(row.max(initial=0))
        if not np.isfinite(float(largest) - float(least)):
            continue
        scale[i], zero_point[i] = _quantization(least, largest)
        scaled = fused(row, np.float32(1) / scale[i], np.float32(zero_point[i]))
        codes[i] = np.maximum(np.rint(scaled), 0)


def _quantization(least: np.float32, largest: np.float32) -> tuple[np.float32, int]:
    """``quant_utils::ChooseQuantizationParams`` of torch, for 7 bits."""
    low, high = float(least), float(largest)
    scale = (high - low) / 127
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        if np.isinf(np.float32(1) / np.float32(scale)):
            scale = 0.1
    if scale < SMALLEST_SCALE:
        amplified = SMALLEST_SCALE / np.float32(scale)
        scale = float(SMALLEST_SCALE)
        if low and high:
            low, high = float(least * amplified), float(largest * amplified)
        elif high:
            high = float(SMALLEST_SCALE * np.float32(127))
        else:
            low = -float(SMALLEST_SCALE * np.float32(127))
    low, high = low / scale, high / scale
    zero = -low if -abs(low) < 127 - abs(high) else 127 - high
    return np.float32(scale), int(np.rint(np.clip(zero, 0, 127)))


def fused(a: Singles, b: Singles | np.float32, c: Singles | np.float32) -> Singles:
    """``a * b + c`` rounded once, as a fused multiply-add rounds it.

    The product of two float32 is a float64. The sum of it and c is rounded to odd, so that rounding it to float32 gives
    what rounding the exact sum gives.
    """
    product, addend = np.broadcast_arrays(a.astype(np.float64) * b, c.astype(np.float64))
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = total.view(np.int64) & 1 == 0
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = total.view(np.int64) + np.where((error != 0) & even, step, 0)
    with np.errstate(over="ignore", under="ignore"):
        rounded: Singles = odd.view(np.float64).astype(np.float32)
    return rounded
