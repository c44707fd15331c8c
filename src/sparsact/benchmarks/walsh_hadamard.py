"""Walsh-Hadamard transform of one table, in place, one thread, beside fht-cpu and a copy of the table.

Goal: at every n = 14...24, float32 and float64, at least 1.5 times as fast as fht-cpu 1.0.1; at n = 20 at most 6 times
the time of ``np.copyto`` of the same table. Unit: milliseconds, medians of repeats taken in turns; both transforms
unnormalised, in place, on the same NumPy array, restored untimed before each call.

Roofline. The least traffic is the table read and written once a *pass*. A table within the second cache needs one
pass; above that, one for the blocks of that size and one for every further 3 coordinates (6 from 32 MB on). The floor
is passes * bytes / bandwidth, with the bandwidth of an in-place ``np.negative`` of the table itself.

    python -m sparsact.benchmarks.walsh_hadamard [--quick] [--out results/walsh_hadamard.jsonl]
"""

from __future__ import annotations

from math import ceil, log2
from statistics import median
from typing import Any

import fht_cpu
import numpy as np

from sparsact import kernels
from sparsact.benchmarks.figures import Figure, judged, options, report
from sparsact.benchmarks.harness import interleaved

SECOND_CACHE = 2**20  # bytes of a block that stays in it beside other things
IN_MEMORY = 2**25


def passes(nbytes: int) -> int:
    """Passes over memory that the algorithm makes of a table of so many bytes."""
    coordinates = max(0, ceil(log2(nbytes / SECOND_CACHE)))
    far = nbytes >= IN_MEMORY and coordinates > 0
    return 1 + far + ceil(max(0, coordinates - 6 * far) / 3)


def measure(n: int, dtype: type[Any], repeats: int, quick: bool) -> list[Figure]:
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
        Figure.ratio(work, "times as fast", seconds["fht-cpu"], seconds["ours"], least=judged(1.5, quick)),
        Figure.of(work, "copies", copies, "", most=judged(6, quick) if n == 20 else None),
        Figure(work, "read and written", 2e-9 * table.nbytes / median(seconds["ours"]), "GB/s"),
        Figure(work, "floor", passes(table.nbytes) * 1e3 * median(seconds["sweep"]), "ms"),
    ]


def main() -> int:
    """Measure every size, print the table, keep the rows; 1 when a size misses the goal."""
    parser = options(__doc__, repeats=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(14, 25)), metavar="N")
    told = parser.parse_args()
    figures = []
    for dtype in (np.float32, np.float64):
        for n in [10, 12] if told.quick else told.sizes:
            figures += measure(n, dtype, min(301, max(told.repeats, 2**25 >> n)), told.quick)
    return report("walsh_hadamard", figures, told.out)


if __name__ == "__main__":
    raise SystemExit(main())
