"""Walsh-Hadamard transform of one table, in place, one thread, beside fht-cpu and a copy of the table.

Goal, float32 and float64: at least 1.8 times as fast as fht-cpu 1.0.1 at every n = 14...20 and 1.5 times at every
n = 21...24; at n = 20 at most 6 times the time of ``np.copyto`` of the same table. Unit: milliseconds, medians of
repeats taken in turns; both transforms unnormalised, in place, on the same NumPy array, restored untimed before each
call.

Roofline. The larger of two floors. *Traffic*: a table within the second cache is read and written once; a larger one
at least twice, in blocks of that size and then between the blocks. A pass takes the time of an in-place
``np.negative`` of the table. *Arithmetic*: ``n * 2**n`` additions. On an AMD EPYC 7003 with 256-bit vectors a
coordinate between vectors takes 0.5 cycles a vector, and the three inside a vector of float32 take 2.8, each a shuffle
and a multiplication by +-1. At these rates n = 16 takes 9.3 cycles a vector; the transform took 10.1 and fht-cpu 14.4,
so arithmetic bounds the ratio in the caches there.
"""

from __future__ import annotations

import os
from argparse import Namespace
from statistics import median
from typing import Any, Final

import fht_cpu
import numpy as np

from benchmarks.figures import Figure
from benchmarks.harness import interleaved
from benchmarks.program import option, program
from sparsact import kernels

SIZE_NAME: Final = "SC_LEVEL2_CACHE_SIZE"
SECOND_CACHE: Final = (SIZE_NAME in getattr(os, "sysconf_names", {}) and os.sysconf(SIZE_NAME)) or 2**20  # bytes


def measure(n: int, dtype: type[Any], repeats: int) -> list[Figure]:
    """Every figure of one size: milliseconds of both sides, the ratios of the goal, and the floor."""
    values = np.random.default_rng(n).standard_normal(2**n).astype(dtype)
    table, other = values.copy(), values.copy()
    seconds = interleaved(
        {
            "ours": lambda: kernels.walsh_hadamard(table[None], n_threads=1),
            "fht-cpu": lambda: fht_cpu.fht(table, num_threads=1),
            "copy": lambda: np.copyto(other, table),
            "sweep": lambda: np.negative(table, out=table),
        },
        repeats,
        before=lambda: np.copyto(table, values),
    )
    work = f"n={n} {np.dtype(dtype).name}"
    copies = [ours / copy for ours, copy in zip(seconds["ours"], seconds["copy"], strict=True)]
    return [
        *(Figure.of(work, name, [1e3 * each for each in seconds[name]], "ms") for name in ("ours", "fht-cpu", "copy")),
        Figure.ratio(work, "times as fast", seconds["fht-cpu"], seconds["ours"], least=1.8 if n <= 20 else 1.5),
        Figure.of(work, "copies", copies, "", most=6 if n == 20 else None),
        Figure(work, "read and written", 2e-9 * table.nbytes / median(seconds["ours"]), "GB/s"),
        Figure(work, "floor", (1 + (table.nbytes > SECOND_CACHE)) * 1e3 * median(seconds["sweep"]), "ms"),
    ]


@program(option("--sizes", type=int, nargs="+", default=list(range(14, 25)), metavar="N"), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures = []
    for dtype in (np.float32, np.float64):
        for n in [10, 12] if arguments.quick else arguments.sizes:
            figures += measure(n, dtype, min(301, max(arguments.repeats, 2**25 >> n)))
    return figures
