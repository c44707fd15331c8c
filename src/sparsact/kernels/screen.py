"""Kernel of the certified screen: which units are proved off, from an int8 copy of their weights.

The mathematics, and the proof, are in :mod:`sparsact.inference.certified_screen`, whose names are used here.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.gather import ordered_sum, widened
from sparsact.kernels.neurons import INPUTS, array_at

Array = NDArray[np.float64]
Singles = NDArray[np.float32]
SCREEN_BLOCK: Final = 64
MAX_INPUTS: Final = 65_536  # of 8 bits times 8 bits, added in 32
PARTIALS, TERMS = 32, 8  # partial sums over inputs, and over directions
LARGEST_INTEGER: Final = 32639
UP: Final = 1 + 2.0**-30
SLACK: Final = 2.0**-45


class Products(Enum):
    """How a screen multiplies several inputs with its copy."""

    BY_ROWS = "a row at a time"
    VNNI = "rows packed for VNNI"
    AMX = "rows packed for AMX"


def products() -> Products:
    """The way that native kernels use on this processor; the reference goes by rows."""
    if dispatch.backend() == "reference" or not dispatch.native.vnni():
        return Products.BY_ROWS
    return Products.AMX if dispatch.native.amx() else Products.VNNI


class Widening(NamedTuple):
    """Margins that make bounds hold for rounded outputs too, not only for real numbers.

    ``rounding`` times the size of an input is added to N, ``relative`` is taken of the sizes of all terms, and
    ``least`` is added to that. Nothing is known of inputs whose size exceeds ``limit``.
    """

    rounding: float
    relative: float
    least: float
    limit: float


def screen(
    rows: NDArray[np.uint8],
    a: Array,
    Q: Array,
    R: Array,
    offset: Array,
    along: Singles,
    columns: Array,
    directions: Singles,
    leak: float,
) -> Any:
    """The screen of a matrix, which holds these arrays; its calls take addresses, so that they cost microseconds.

    Reads the copy once per call, ``s * width`` bytes; all instruction sets and the reference give the same bits.

    Parameters
    ----------
    rows : ndarray of shape (s, width), uint8
        Rows of the copy, q + 128, and 128 from ``d`` on; ``width`` is the next multiple of ``SCREEN_BLOCK``, d at most
        ``MAX_INPUTS``.
    a, Q, R, offset : ndarray of shape (s,), float64
        Scale of each row, bounds of its copy's norm and of its residual's, and b - t.
    along : ndarray of shape (s, k), float32
        Coefficients G of the residuals along the directions.
    columns : ndarray of shape (d,), float64
        1 / c, powers of two.
    directions : ndarray of shape (k, d), float32
        M.
    leak : float
        delta.

    Returns
    -------
    screen : object
        ``survivors(x, kind, m, mask, counts, n_threads)`` fills ``mask`` (m, s), uint8, with 0 where a unit is
        proved off and else 1, and ``counts`` (m,), int64. ``bounds(x, kind, m, bounds, n_threads)`` fills (m, s),
        float64, with the bounds that decide it, NaN where nothing is known;
        ``estimates(x, kind, m, estimates, n_threads)`` fills (m, s), float32. Arrays are given as addresses of
        C-contiguous memory, x (m, d) as float32, bfloat16 or float16: kinds 0, 1 and 2.
    """
    return dispatch.chosen.Screen(rows, a, Q, R, offset, along, columns, directions, leak)


@dispatch.kernel
class _Screen:
    def __init__(self, *held: Any) -> None:
        rows, a, Q, R, offset, along, columns, directions, self.leak = held
        self.q = (rows ^ np.uint8(128)).view(np.int8)[:, : len(columns)]
        self.a, self.Q, self.R, self.offset, self.along = a, Q, R, offset, along.astype(np.float64)
        self.columns, self.directions = columns, directions.astype(np.float64)

    def survivors(self, x: int, kind: int, m: int, mask: int, counts: int, n_threads: int) -> None:
        upper = self._bounds(x, kind, m)
        survive = array_at(mask, upper.shape, np.uint8)
        survive[:] = ~(upper <= 0)
        array_at(counts, (m,), np.int64)[:] = survive.sum(axis=1)

    def bounds(self, x: int, kind: int, m: int, bounds: int, n_threads: int) -> None:
        upper = self._bounds(x, kind, m)
        array_at(bounds, upper.shape, np.float64)[:] = upper

    def estimates(self, x: int, kind: int, m: int, estimates: int, n_threads: int) -> None:
        filled = array_at(estimates, (m, len(self.a)), np.float32)
        for row, point in zip(filled, self._inputs(x, kind, m), strict=True):
            b, p, h, _, N, _ = self._prepared(point)
            with np.errstate(all="ignore"):
                row[:] = b * (self._products(p, h)[0] + 0 * N) + self.offset

    def _inputs(self, x: int, kind: int, m: int) -> NDArray[Any]:
        return widened(array_at(x, (m, len(self.columns)), INPUTS[kind])).astype(np.float64)

    def _bounds(self, x: int, kind: int, m: int) -> Array:
        upper = np.empty((m, len(self.a)))
        for row, point in zip(upper, self._inputs(x, kind, m), strict=True):
            row[:] = self._interval(self._prepared(point), SLACK, 0.0)[1]
        return upper

    def intervals(self, x: Array, widening: Widening) -> tuple[Array, Array] | None:
        """Lower and upper bounds of the outputs of an input, as they are rounded; None if nothing is known."""
        prepared = self._prepared(x, widening.rounding)
        if not prepared.b * prepared.size <= widening.limit:
            return None
        return self._interval(prepared, widening.relative, widening.least)

    def _interval(self, x: _Prepared, relative: float, least: float) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):  # rows and inputs that are not finite give NaN, which proves nothing
            total, sizes = self._products(x.p, x.h)
            unknown = self.Q * x.E + self.R * x.N
            slack = relative * (x.b * (sizes + unknown) + np.abs(self.offset)) + least
            return x.b * (total - unknown) + self.offset - slack, x.b * (total + unknown) + self.offset + slack

    def _products(self, p: NDArray[np.int64], h: list[float]) -> tuple[Array, Array]:
        """<a q, p> + <G, h> of each row, and the sum of the sizes of its terms."""
        total = self.a * (self.q @ p).astype(np.float64)
        terms = self.along * np.array(h)
        return total + ordered_sum(terms, TERMS), np.abs(total) + ordered_sum(np.abs(terms), TERMS)

    def _prepared(self, x: Array, rounding: float = 0.0) -> _Prepared:
        with np.errstate(invalid="ignore"):
            z = x * self.columns
        largest = float(np.abs(z).max(initial=0))
        if largest == 0 or not np.isfinite(z).all():
            size = 0.0 if largest == 0 else float("nan")
            return _Prepared(1.0, np.zeros(len(z), dtype=np.int64), [0.0] * len(self.directions), 0.0, size, size)
        b = float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 15))
        b *= 2 if largest > LARGEST_INTEGER * b else 1
        z = z / b
        p = np.rint(z)
        h = [float(ordered_sum(z * direction, PARTIALS)) for direction in self.directions]
        rest, spread, size = z.copy(), 0.0, norm(z)
        for component, direction in zip(h, self.directions, strict=True):
            rest -= component * direction
            spread += abs(component)
        N = UP * (norm(rest) + self.leak * spread + (2.0**-18 + rounding) * size)
        return _Prepared(b, p.astype(np.int64), h, UP * norm(z - p), N, UP * size)


class _Prepared(NamedTuple):
    """Unit b of an input, integers p, components h, the norms E and N of what these leave out, and the norm of z."""

    b: float
    p: NDArray[np.int64]
    h: list[float]
    E: float
    N: float
    size: float


def norm(x: Array) -> float:
    """Euclidean norm, rounded."""
    return float(np.sqrt(ordered_sum(x * x, PARTIALS)))
