"""Walsh-Hadamard transform of one table, on one thread: time compared with fht-cpu and with a copy of the table.

Both sides transform the same NumPy array in place; restoring it is not timed. At n = 20 the public function, which
allocates its result, is timed too: the first call of a process, and later ones. Unit: milliseconds, medians of repeats
in turns; from n = 20 on, CPU time of the thread. ``SPARSACT_ISA=avx2`` measures the AVX2 kernels, in rows of that name.

Targets for float32 and float64: 1.5 times as fast as fht-cpu 1.0.1 at n = 20...24, and 1.8 times at n = 14...19. At
n = 20...24 at most the time of 2.3 copies (``np.copyto`` to another table): the transform needs at least two passes
over memory, each with the traffic of a copy.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import fht_cpu
import numpy as np

from benchmarks.figures import Figure
from benchmarks.harness import first_and_later, interleaved
from benchmarks.program import option, program
from sparsact import fourier, kernels
from sparsact.kernels import dispatch

MEMORY_BOUND: Final = 20  # the least n


def prepared(n: int, dtype: type[Any]) -> Callable[[], object]:
    """A transform of normal values as users call it, into an array of its own."""
    return partial(fourier.walsh_hadamard, np.random.default_rng(n).standard_normal(2**n).astype(dtype))


def work_of(n: int, dtype: type[Any]) -> str:
    """The table in words, and the kernels unless they are this processor's."""
    isa = dispatch.native.isa()
    return f"n={n} {np.dtype(dtype).name}" + f" {isa}" * (isa != dispatch.native.widest_isa())


def measure(n: int, dtype: type[Any], repeats: int) -> list[Figure]:
    """Every figure of one size: milliseconds of both sides, and the ratios of the goal."""
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
        clock=time.thread_time if n >= MEMORY_BOUND else time.perf_counter,
    )
    is_memory_bound, work = n >= MEMORY_BOUND, work_of(n, dtype)
    copies = [ours / copy for ours, copy in zip(seconds["ours"], seconds["copy"], strict=True)]
    return [
        *(Figure.of(work, name, its.scaled(1e3), "ms") for name, its in seconds.items()),
        Figure.ratio(work, "times as fast", seconds["fht-cpu"], seconds["ours"], least=1.5 if is_memory_bound else 1.8),
        Figure.of(work, "copies", copies, "", most=2.3 if is_memory_bound else None),
    ]


@program(option("--sizes", type=int, nargs="+", default=list(range(14, 25)), metavar="N"), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures, sizes = [], [10, 12] if arguments.quick else arguments.sizes
    for dtype in (np.float32, np.float64):
        for n in sizes:
            figures += measure(n, dtype, min(301, max(arguments.repeats, 2**25 >> n)))
        if MEMORY_BOUND in sizes:
            figures += first_and_later(work_of(MEMORY_BOUND, dtype), "fresh array", 3, prepared, MEMORY_BOUND, dtype)
    return figures
