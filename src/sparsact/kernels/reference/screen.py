"""Upper bounds of pre-activations from an int8 copy of the weights, in the native kernel's order of additions."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.reference.gather import widened

PARTIALS = 32
TERMS = 8
LARGEST_INTEGER = 32639
UP = 1 + 2.0**-30
SLACK = 2.0**-45


class ReferenceScreen:
    """See :func:`sparsact.kernels.screen.screen`."""

    def __init__(
        self,
        rows: NDArray[np.uint8],
        a: NDArray[np.float64],
        Q: NDArray[np.float64],
        R: NDArray[np.float64],
        offset: NDArray[np.float64],
        along: NDArray[np.float32],
        columns: NDArray[np.float64],
        directions: NDArray[np.float32],
        leak: float,
    ) -> None:
        self.q = (rows ^ np.uint8(128)).view(np.int8)[:, : len(columns)]
        self.a, self.Q, self.R, self.offset, self.along = a, Q, R, offset, along.astype(np.float64)
        self.columns, self.directions, self.leak = columns, directions.astype(np.float64), leak

    def survivors(self, x: int, bfloat16: bool, m: int, mask: int, counts: int, n_threads: int) -> None:
        """Fill the mask and its counts."""
        upper = self._bounds(x, bfloat16, m)
        survive = memory(mask, upper.shape, np.uint8)
        survive[:] = ~(upper <= 0)
        memory(counts, (m,), np.int64)[:] = survive.sum(axis=1)

    def bounds(self, x: int, bfloat16: bool, m: int, bounds: int, n_threads: int) -> None:
        """Fill the upper bounds."""
        upper = self._bounds(x, bfloat16, m)
        memory(bounds, upper.shape, np.float64)[:] = upper

    def estimates(self, x: int, bfloat16: bool, m: int, estimates: int, n_threads: int) -> None:
        """Fill the estimates."""
        filled = memory(estimates, (m, len(self.a)), np.float32)
        for row, point in zip(filled, self._inputs(x, bfloat16, m), strict=True):
            b, p, h, _, N = self._prepared(point)
            with np.errstate(all="ignore"):
                row[:] = b * (self._products(p, h)[0] + 0 * N) + self.offset

    def _inputs(self, x: int, bfloat16: bool, m: int) -> NDArray[Any]:
        return widened(memory(x, (m, len(self.columns)), np.uint16 if bfloat16 else np.float32)).astype(np.float64)

    def _bounds(self, x: int, bfloat16: bool, m: int) -> NDArray[np.float64]:
        upper = np.empty((m, len(self.a)))
        for row, point in zip(upper, self._inputs(x, bfloat16, m), strict=True):
            b, p, h, E, N = self._prepared(point)
            with np.errstate(all="ignore"):  # rows and inputs that are not finite give NaN, which proves nothing
                total, sizes = self._products(p, h)
                unknown = self.Q * E + self.R * N
                row[:] = b * (total + unknown) + self.offset
                row += SLACK * (b * (sizes + unknown) + np.abs(self.offset))
        return upper

    def _products(self, p: NDArray[np.int64], h: list[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """<a q, p> + <G, h> of each row, and the sum of the sizes of its terms."""
        total = self.a * (self.q @ p).astype(np.float64)
        terms = self.along * np.array(h)
        return total + ordered_sum(terms, TERMS), np.abs(total) + ordered_sum(np.abs(terms), TERMS)

    def _prepared(self, x: NDArray[np.float64]) -> tuple[float, NDArray[np.int64], list[float], float, float]:
        """Unit b, integers p, components h, and the norms E and N of what these leave out."""
        with np.errstate(invalid="ignore"):
            z = x * self.columns
        largest = float(np.abs(z).max(initial=0))
        if largest == 0 or not np.isfinite(z).all():
            nothing = np.zeros(len(z), dtype=np.int64), [0.0] * len(self.directions)
            return 1.0, *nothing, 0.0, 0.0 if largest == 0 else float("nan")
        b = float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 15))
        b *= 2 if largest > LARGEST_INTEGER * b else 1
        z = z / b
        p = np.rint(z)
        h = [ordered_sum(z * direction) for direction in self.directions]
        rest, spread = z.copy(), 0.0
        for component, direction in zip(h, self.directions, strict=True):
            rest -= component * direction
            spread += abs(component)
        N = UP * (norm(rest) + self.leak * spread + 2.0**-18 * norm(z))
        return b, p.astype(np.int64), h, UP * norm(z - p), N


def ordered_sum(terms: NDArray[np.float64], partials: int = PARTIALS) -> Any:
    """The sum along the last axis through so many partial sums side by side, which are then added in halves."""
    *rows, n = terms.shape
    blocks = -(-n // partials) + 1
    padded = np.zeros((*rows, blocks * partials))
    padded[..., partials : partials + n] = terms
    sums = np.add.accumulate(padded.reshape(*rows, blocks, partials), axis=-2)[..., -1, :]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def norm(x: NDArray[np.float64]) -> float:
    """Euclidean norm, rounded."""
    return float(np.sqrt(ordered_sum(x * x)))


def memory(address: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """The array at an address."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not count:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer((ctypes.c_char * count).from_address(address), dtype=dtype).reshape(shape)
