"""Walsh-Hadamard transform of one table, in place, one thread, beside fht-cpu and a copy of the table.

Goal, float32 and float64: at n = 20...24 the time of 2.3 copies (``np.copyto`` of the table to another) at most, since
the roofline there is two passes over memory, each with the traffic of a copy, and 1.5 times as fast as fht-cpu 1.0.1;
1.8 times at n = 14...19. Unit: milliseconds, medians of repeats taken in turns; both transforms unnormalised, in place,
on the same NumPy array, restored untimed before each call. At n = 20 also the function that users call, which makes an
array of its own: first in a process, and later. ``SPARSACT_ISA=avx2`` measures the kernels of other processors.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Final

import fht_cpu
import numpy as np

from benchmarks.figures import Figure
from benchmarks.harness import first_and_later, interleaved
from benchmarks.program import option, program
from sparsact import fourier, kernels

MEMORY_BOUND: Final = 20  # the least n


def transforming(n: int, dtype: type[Any]) -> Callable[[], object]:
    """A transform of normal values as users call it, into an array of its own."""
    return partial(fourier.walsh_hadamard, np.random.default_rng(n).standard_normal(2**n).astype(dtype))


def measure(n: int, dtype: type[Any], repeats: int) -> list[Figure]:
    """Every figure of one size: milliseconds of both sides, the ratios of the goal, and the floor."""
    values = np.random.default_rng(n).standard_normal(2**n).astype(dtype)
    table, other = values.copy(), values.copy()
    seconds = interleaved(
        {
            "ours": lambda: kernels.walsh_hadamard(table[None], n_threads=1),
            "fht-cpu": lambda: fht_cpu.fht(table, num_threads=1),
            "copy": lambda: np.copyto(other, table),
        },
        repeats,
        before=lambda: np.copyto(table, values),
    )
    is_memory_bound = n >= MEMORY_BOUND
    work = f"n={n} {np.dtype(dtype).name}"
    copies = [ours / copy for ours, copy in zip(seconds["ours"], seconds["copy"], strict=True)]
    return [
        *(Figure.of(work, name, seconds[name].scaled(1e3), "ms") for name in ("ours", "fht-cpu", "copy")),
        Figure.ratio(work, "times as fast", seconds["fht-cpu"], seconds["ours"], least=1.5 if is_memory_bound else 1.8),
        Figure.of(work, "copies", copies, "", most=2.3 if is_memory_bound else None),
        Figure(work, "read and written", 2e-9 * table.nbytes / median(seconds["ours"]), "GB/s"),
    ]


@program(option("--sizes", type=int, nargs="+", default=list(range(14, 25)), metavar="N"), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures, sizes = [], [10, 12] if arguments.quick else arguments.sizes
    for dtype in (np.float32, np.float64):
        for n in sizes:
            figures += measure(n, dtype, min(301, max(arguments.repeats, 2**25 >> n)))
        if MEMORY_BOUND in sizes:
            work = f"n={MEMORY_BOUND} {np.dtype(dtype).name}"
            figures += first_and_later(work, "fresh array", 3, transforming, MEMORY_BOUND, dtype)
    return figures
