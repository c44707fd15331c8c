r"""Kernels of linear layers with int4 weights in groups of 32, whose inputs are quantised row by row as they come.

A matrix is held by rows. Weight k of row j is :math:`s\, a_{jg}\, w_{jk}`, for w from -8 to 7, an int8 multiplier a of
the group :math:`g = \lfloor k / 32 \rfloor` and a float32 scale s of the output; 4.25 bits for each weight. Inputs have
one scale per row, :math:`s_x = \max_k |x_k| / 127`:

.. math:: y_j = \mathrm{fma}\Bigl(\sum_g a_{jg} \sum_{k \in g} q_k w_{jk},\; s_x s_j,\; b_j\Bigr), \qquad
          q_k = \mathrm{rint}(x_k \cdot (127 / \max |x|)).

Sums hold integers and are exact: every kernel, instruction set, number of threads and order gives the same bits, and
an input whose code is 0 adds nothing. If a number of a row is not finite, all outputs of the row are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.int8_linear import TILE, IntegerLinear, Singles, in_large_pages, untiled

INT4_GROUP: Final = 32  # weights that share a multiplier
INT4_BLOCK: Final = 128  # columns that rows are filled up to
LARGEST_MULTIPLIER: Final = 127
SMALLEST_INPUT: Final = np.float32(2.0**-121)  # a row of smaller numbers has codes of 0: 127 / 2^-122 overflows


class Int4Linear:
    r"""Products of float32 inputs with int4 weights: rows :math:`w_j` of outputs, or rows :math:`v_i` of inputs.

    Parameters
    ----------
    packed : ndarray of shape (t, 64 * blocks), uint8
        From :func:`pack_int4`: one row per output for :attr:`rows`, one row per input for :attr:`columns`. Memory that
        is contiguous is used as it is. Also in tiles (:func:`~sparsact.kernels.int8_linear.tiled`), for :attr:`rows`
        alone, which is then fastest.
    multipliers : ndarray of shape (t, groups), int8
        One per group of a row, for all groups of ``packed`` or the first; for tiles from :func:`tiled_multipliers`.
    scale : ndarray of shape (outputs,), float32
        Scale of each output's weights.
    bias : ndarray of shape (outputs,), float32
        Added to the outputs.
    n : int
        Columns in use.

    Attributes
    ----------
    rows : callable
        ``rows(x, m, out, n_threads)`` fills ``out`` (m, t) from x (m, n): reads all weights.
    rows_at : callable
        ``rows_at(x, mask, m, out, n_threads)``: the outputs at which ``mask`` (m, t), uint8, is not 0, and 0 elsewhere.
        Reads the rows of these.
    columns : callable
        ``columns(h, m, out, n_threads)`` fills ``out`` (m, n) from h (m, t), and returns how many codes differ from 0:
        their rows alone are read.

    Notes
    -----
    Arrays of the calls are addresses of C-contiguous float32 memory, such as ``Tensor.data_ptr``; nothing is checked.
    Sums fit in 32 bits if ``8 * 127 * inputs`` times the largest multiplier is less than :math:`2^{31}`.

    Examples
    --------
    >>> W, one = np.array([[1, -2, 3], [0, 7, 5]], dtype=np.int8), np.ones(2, dtype=np.float32)
    >>> a = np.array([[1], [10]], dtype=np.int8)
    >>> x, out = np.array([[127.0, 0.0, 2.0]], dtype=np.float32), np.empty((1, 2), dtype=np.float32)
    >>> Int4Linear(pack_int4(W), a, one, 0 * one, 3).rows(x.ctypes.data, 1, out.ctypes.data, 1)
    >>> out
    array([[133., 100.]], dtype=float32)
    """

    def __init__(
        self, packed: NDArray[np.uint8], multipliers: NDArray[np.int8], scale: Singles, bias: Singles, n: int
    ) -> None:
        in_tiles = packed.ndim == 4
        if not in_tiles:
            multipliers = _filled(multipliers, packed.shape[1])
        both = packed.reshape(len(packed), -1), multipliers.reshape(len(packed), -1)
        held = dispatch.chosen.Int4Linear(*both, scale, bias, n, in_tiles)
        self.packed, self.multipliers = packed, multipliers
        self.nbytes = packed.nbytes + multipliers.nbytes + scale.nbytes
        self.rows: Callable[[int, int, int, int], None] = held.rows
        self.rows_at: Callable[[int, int, int, int, int], None] = held.rows_at
        self.columns: Callable[[int, int, int, int], int] = held.columns


def _filled(multipliers: NDArray[np.int8], width: int) -> NDArray[np.int8]:
    """The multipliers of all groups of rows of ``width`` bytes; 0 where there were none."""
    groups = 2 * width // INT4_GROUP
    return np.pad(multipliers, ((0, 0), (0, groups - multipliers.shape[1])))


def tiled_multipliers(multipliers: NDArray[np.int8], width: int) -> NDArray[np.int8]:
    """Multipliers of rows of ``width`` bytes in tiles of 16, a group's side by side: (tiles, groups, 16)."""
    rows = np.pad(_filled(multipliers, width), ((0, -len(multipliers) % TILE), (0, 0)))
    return np.ascontiguousarray(rows.reshape(-1, TILE, rows.shape[1]).swapaxes(1, 2))


def pack_int4(weights: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Two weights from -8 to 7 in a byte: columns k and k + 16 of a group, the first in the low half, plus 8.

    Parameters
    ----------
    weights : ndarray of shape (t, n), int8

    Returns
    -------
    packed : ndarray of shape (t, 64 * blocks), uint8
        Rows are filled up with zeros to whole blocks of 128 columns.

    Examples
    --------
    >>> pack_int4(np.array([[-8, 7, 0]], dtype=np.int8))[0, :3]
    array([128, 143, 136], dtype=uint8)
    """
    t, n = weights.shape
    width = -(-n // INT4_BLOCK) * INT4_BLOCK
    filled = np.full((t, width), 8, dtype=np.uint8)
    np.add(weights, 8, out=filled[:, :n], casting="unsafe")
    halves = filled.reshape(t, width // INT4_GROUP, 2, INT4_GROUP // 2)
    packed = in_large_pages(t, width // 2).view(np.uint8)
    np.bitwise_or(halves[:, :, 0], halves[:, :, 1] << 4, out=packed.reshape(t, -1, INT4_GROUP // 2))
    return packed


def unpack_int4(packed: NDArray[np.uint8], n: int) -> NDArray[np.int8]:
    """The weights (t, n) that :func:`pack_int4` packed."""
    halves = packed.reshape(len(packed), -1, 1, INT4_GROUP // 2)
    both = np.concatenate([halves & 15, halves >> 4], axis=2).reshape(len(packed), -1)
    return both[:, :n].astype(np.int8) - np.int8(8)


def untiled_multipliers(multipliers: NDArray[np.int8], t: int) -> NDArray[np.int8]:
    """The multipliers (t, groups) that :func:`tiled_multipliers` arranged; rows are returned as they are."""
    if multipliers.ndim == 2:
        return multipliers
    return multipliers.swapaxes(1, 2).reshape(-1, multipliers.shape[1])[:t]


@dispatch.kernel
class _Int4Linear(IntegerLinear):
    def __init__(
        self,
        packed: NDArray[np.uint8],
        multipliers: NDArray[np.int8],
        scale: Singles,
        bias: Singles,
        n: int,
        in_tiles: bool,
    ) -> None:
        if in_tiles:
            packed = untiled(packed.reshape(len(packed), -1, TILE, 4), len(scale))
            multipliers = untiled_multipliers(multipliers.reshape(-1, multipliers.shape[1] // TILE, TILE), len(scale))
        by_group = multipliers.astype(np.int64).repeat(INT4_GROUP, axis=1)[:, :n]
        self._weights, self._scale, self._bias = unpack_int4(packed, n) * by_group, scale, bias

    def _outputs(self, X: Singles, weights: NDArray[np.int64]) -> tuple[Any, int]:
        codes, scales = quantize_rows(X)
        return self._scaled(codes.astype(np.int64) @ weights, scales), int(np.count_nonzero(codes))


def quantize_rows(X: Singles) -> tuple[NDArray[np.int8], Singles]:
    """Codes of inputs and a scale for each row: a number is about ``scale * code``.

    Parameters
    ----------
    X : ndarray of shape (m, n), float32
        Inputs, C-contiguous.

    Returns
    -------
    codes : ndarray of shape (m, n), int8
        From -127 to 127; 0 in rows whose numbers are not all finite, or all smaller than :math:`2^{-121}`.
    scales : ndarray of shape (m,), float32
        NaN for a row whose numbers are not all finite.

    Examples
    --------
    >>> codes, scales = quantize_rows(np.array([[0.5, -1.27, 0.004]], dtype=np.float32))
    >>> codes.tolist(), scales.round(6).tolist()
    ([[50, -127, 0]], [0.009999999776482582])
    """
    codes, scales = np.empty(X.shape, dtype=np.int8), np.empty(len(X), dtype=np.float32)
    dispatch.chosen.quantize_rows(X, codes, scales)
    return codes, scales


@dispatch.kernel
def _quantize_rows(X: Singles, codes: NDArray[np.int8], scales: Singles) -> None:
    size = np.abs(X).max(axis=1, initial=0)
    scales[:] = np.where(np.isfinite(size), size / np.float32(127), np.float32(np.nan))
    usable = np.isfinite(size) & (size >= SMALLEST_INPUT)
    inverse = np.divide(np.float32(127), size, where=usable, out=np.zeros_like(size))
    codes[:] = np.rint(np.where(usable[:, None], X, 0) * inverse[:, None])
