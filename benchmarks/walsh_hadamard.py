"""Walsh-Hadamard transform of one table, in place, one thread, beside fht-cpu and a copy of the table.

Goal: at every n = 14...24, float32 and float64, at least 1.5 times as fast as fht-cpu 1.0.1; at n = 20 at most 6 times
the time of ``np.copyto`` of the same table. Unit: milliseconds, medians of repeats taken in turns; both transforms
unnormalised, in place, on the same NumPy array, restored untimed before each call.

Roofline. The least traffic is the table read and written once a *pass*. A table within the second cache needs one
pass; above that, one for the blocks of that size and one for every further 3 coordinates (6 from 32 MB on). The floor
is passes * bytes / bandwidth, with the bandwidth of an in-place ``np.negative`` of the table itself.

    python benchmarks/walsh_hadamard.py [--quick] [--out results/walsh_hadamard.jsonl]
"""

from __future__ import annotations

import argparse
from math import ceil, log2
from statistics import median
from typing import Any

import fht_cpu
import numpy as np
from harness import append_row, interleaved, machine
from rich.console import Console
from rich.table import Table

from sparsact import kernels

SECOND_CACHE = 2**20  # bytes of a block that stays in it beside other things
IN_MEMORY = 2**25


def passes(nbytes: int) -> int:
    """Passes over memory that the algorithm makes of a table of so many bytes."""
    coordinates = max(0, ceil(log2(nbytes / SECOND_CACHE)))
    far = nbytes >= IN_MEMORY and coordinates > 0
    return 1 + far + ceil(max(0, coordinates - 6 * far) / 3)


def measure(n: int, dtype: type, repeats: int) -> dict[str, Any]:
    """One row: medians in milliseconds, and the ratios of the goal."""
    values = np.random.default_rng(n).standard_normal(2**n).astype(dtype)
    table, other = values.copy(), values.copy()
    seconds = interleaved(
        {
            "ours": lambda: kernels.walsh_hadamard(table[None], n_threads=1),
            "fht_cpu": lambda: fht_cpu.fht(table, num_threads=1),
            "copy": lambda: np.copyto(other, table),
            "sweep": lambda: np.negative(table, out=table),
        },
        repeats,
        before=lambda: np.copyto(table, values),
    )
    ms = {name: 1e3 * median(times) for name, times in seconds.items()}
    return {
        "n": n,
        "dtype": np.dtype(dtype).name,
        "repeats": repeats,
        **{f"{name}_ms": round(time, 5) for name, time in ms.items()},
        **{f"{name}_least_ms": round(1e3 * min(times), 5) for name, times in seconds.items()},
        "speedup": round(ms["fht_cpu"] / ms["ours"], 3),
        "speedup_of_least": round(min(seconds["fht_cpu"]) / min(seconds["ours"]), 3),
        "copies": round(ms["ours"] / ms["copy"], 3),
        "gb_per_s": round(2 * table.nbytes / ms["ours"] / 1e6, 2),
        "floor_ms": round(passes(table.nbytes) * ms["sweep"], 5),
    }


def met(row: dict[str, Any]) -> bool:
    """Whether a row reaches the goal."""
    return row["speedup"] >= 1.5 and (row["n"] != 20 or row["copies"] <= 6)


def main() -> int:
    """Measure every size, print the table, keep the rows; 1 when a size misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small sizes, not judged")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(14, 25)), metavar="N")
    parser.add_argument("--out", help="file of JSON rows to append to")
    arguments = parser.parse_args()
    described = machine()
    columns = ("dtype", "n", "ours_ms", "fht_cpu_ms", "speedup", "copy_ms", "copies", "gb_per_s", "floor_ms")
    sizes, missed = ([10, 12] if arguments.quick else arguments.sizes), False
    report = Table(*columns, "bar", title=f"{described['processor']}, {described['kernels']}, {described['commit']}")
    for dtype in (np.float32, np.float64):
        for n in sizes:
            row = measure(n, dtype, repeats=min(301, max(15, 2**25 >> n)))
            reached = None if arguments.quick else met(row)
            missed = missed or reached is False
            report.add_row(*(str(row[name]) for name in columns), {True: "met", False: "MISSED", None: ""}[reached])
            if arguments.out:
                append_row(arguments.out, {"benchmark": "walsh_hadamard", **row, "met": reached, **described})
    Console(width=140).print(report)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
