"""Kernel of the largest outputs of a linear layer: it computes only the outputs that bounds leave in doubt.

The bounds, and their proof, are in :mod:`sparsact.inference.certified_screen`, whose names are used here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.gather import narrowed, row_dots, widened
from sparsact.kernels.neurons import INPUTS, array_at
from sparsact.kernels.screen import Widening

Array = NDArray[Any]


def largest_outputs(screen: Any, W: Array, bias: Array | None, widening: Widening) -> Any:
    """The largest outputs of a matrix and its screen, which holds them; its calls take addresses.

    Reads the copy once per call, ``s * width`` bytes, and the rows in doubt.

    Parameters
    ----------
    screen : object
        As :func:`~sparsact.kernels.screen.screen` returns it.
    W : ndarray of shape (s, d)
        The weights that the screen was made from: float32, float16, or bfloat16 as uint16, C-contiguous.
    bias : ndarray of shape (s,), optional
    widening : Widening
        Bounds on the rounding errors of outputs.

    Returns
    -------
    largest : object
        ``top_k(x, m, k, values, indices, n_threads)`` fills ``values`` (m, k), of the dtype of W, and ``indices``
        (m, k), int64, with the k largest outputs of each of the inputs x (m, d) in decreasing order, and the first
        index with -1 where nothing is known of a row. ``fill(x, m, k, out, n_threads)`` fills ``out`` (m, s) with the
        outputs that may be among the k largest, and -infinity elsewhere. Both return the number of rows about
        which nothing is known. Arrays are given as addresses of C-contiguous memory.
    """
    return dispatch.chosen.LargestOutputs(screen, W, bias, *widening)


@dispatch.kernel
class _LargestOutputs:
    def __init__(self, screen: Any, W: Array, bias: Array | None, *widening: float) -> None:
        self.screen, self.W, self.widening = screen, W, Widening(*widening)
        self.bias = np.zeros(len(W), dtype=np.float32) if bias is None else widened(bias)

    def top_k(self, x: int, m: int, k: int, values: int, indices: int, n_threads: int) -> int:
        chosen, places = array_at(values, (m, k), self.W.dtype), array_at(indices, (m, k), np.int64)
        unknown = 0
        for i, (found, outputs) in enumerate(self._outputs(x, m, k)):
            if found is None:
                places[i, 0], unknown = -1, unknown + 1
                continue
            wide = widened(outputs)
            ranked = np.lexsort((found, -wide, ~np.isnan(wide)))[:k]  # NaN first, as torch has it
            chosen[i], places[i] = outputs[ranked], found[ranked]
        return unknown

    def fill(self, x: int, m: int, k: int, out: int, n_threads: int) -> int:
        filled, unknown = array_at(out, (m, len(self.W)), self.W.dtype), 0
        filled[:] = narrowed(np.full(1, -np.inf, dtype=np.float32), self.W.dtype)
        for row, (found, outputs) in zip(filled, self._outputs(x, m, k), strict=True):
            if found is None:
                unknown += 1
            else:
                row[found] = outputs
        return unknown

    @np.errstate(over="ignore", invalid="ignore")  # native kernels do not warn
    def _outputs(self, x: int, m: int, k: int) -> list[tuple[Any, Array]]:
        """Units of each input that may be among its k largest, or None, and their outputs."""
        X = array_at(x, (m, self.W.shape[1]), INPUTS[INPUTS.index(self.W.dtype.type)])
        results: list[tuple[Any, Array]] = []
        for point in X:
            bounds = self.screen.intervals(widened(point[None])[0].astype(np.float64), self.widening)
            if bounds is None:
                results.append((None, point[:0]))
                continue
            lower, upper = bounds
            sure = np.sort(lower[~np.isnan(lower)])
            found = np.flatnonzero(~(upper < (sure[-k] if len(sure) >= k else -np.inf)))
            dots = row_dots(widened(point), widened(self.W[found])) + self.bias[found]
            results.append((found, narrowed(dots, self.W.dtype)))
        return results
