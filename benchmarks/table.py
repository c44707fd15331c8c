"""The README's table of measured figures, in Markdown, from the newest rows of a file.

python benchmarks/table.py results/benchmarks.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from table_cells import line as _line
from table_cells import spread as _spread
from table_inference import inference_lines
from table_routed import routed_lines


def newest(path: Path) -> dict[tuple[object, ...], dict]:
    """Rows by what they measure; a later row replaces an earlier one."""
    rows = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        transform = row["benchmark"] == "walsh_hadamard"
        rows[(row["dtype"], row["n"]) if transform else (row["work"], row["quantity"])] = row
    return rows


def lines(rows: dict[tuple[object, ...], dict]) -> Iterator[str]:
    """Rows of the table: work, against, bar, measured."""
    for dtype in ("float32", "float64"):
        speedup = {n: rows[dtype, n]["speedup"] for n in range(14, 25)}
        missed = ", ".join(f"n = {n} ({x:.2f}x)" for n, x in speedup.items() if x < 1.5)
        measured = f"{min(speedup.values()):.2f}x to {max(speedup.values()):.2f}x, " + (
            f"missed at {missed}" if missed else "met at each"
        )
        yield _line(f"Walsh-Hadamard, n = 14, 15, ... 24, {dtype}", "fht-cpu 1.0.1", "1.5x at each n", measured)
    copies = " / ".join(f"{rows[dtype, 20]['copies']:.1f}" for dtype in ("float32", "float64"))
    yield _line("Walsh-Hadamard, n = 20, float32 / float64", "a memory copy", "at most 6 copies", f"{copies} copies")
    pipeline = "PolynomialFeatures + Ridge(cholesky)"
    for work, name in (("n=20 d=3 m=100,000", "(n, d, m) = (20, 3, 100k)"), ("n=50 d=2 m=100,000", "(50, 2, 100k)")):
        ratio = rows[work, "fit, times as fast"]
        ours, theirs = (_spread(rows[work, f"fit {side}, seconds"]) for side in ("ours", "theirs"))
        verdict = "" if ratio["met"] else ", missed"
        yield _line(f"fit, {name}, time", pipeline, "50x", f"{ratio['value']:.1f}x ({ours} against {theirs}){verdict}")
        megabytes = [rows[work, f"memory {side}"]["value"] for side in ("ours", "theirs")]
        share = f"1/{megabytes[1] / megabytes[0]:.0f} ({megabytes[0]:.0f} MB against {megabytes[1]:.0f} MB)"
        yield _line("the same, peak memory above the data", "the same", "at most 1/5", share)
        difference = rows[work, "difference of predictions"]["value"]
        yield _line("the same, difference of predictions", "the same", "1e-8 relative", f"{difference:.0e}")
        first, later = (rows[work, f"{which}, times as fast"]["value"] for which in ("first predict", "predict"))
        yield _line("predict 100k rows, the same model", "the same", "20x", f"{later:.0f}x; after a fit {first:.0f}x")
    for work, name, bar in (
        ("n=20 d=10 m=1,000,000", "fit, (20, 10, 1M): 616,666 monomials", "20 s, 2 GB"),
        ("n=100 d=2 m=1,000,000 Parquet", "fit, (100, 2, 1M) streamed from Parquet", "120 s, 2 GB"),
    ):
        seconds, memory = rows[work, "fit"]["value"], rows[work, "peak memory"]["value"]
        yield _line(name, "-", bar, f"{seconds:.1f} s, {memory:.2f} GB")
    work = "n=20 m=100,000 3 degrees 20 alphas 5 folds"
    theirs, ours = rows[work, "GridSearchCV, measured in full"]["value"], rows[work, "ours"]["value"]
    measured = f"{rows[work, 'times as fast']['value']:.0f}x ({ours:.1f} s against {theirs:.0f} s), equal scores"
    name = "cross-validation, degrees 1-3, 20 penalties, 5 folds, n = 20, m = 100k"
    yield _line(name, "GridSearchCV", "50x", measured)
    if ("Index_10 m=100,000", "times as fast") in rows:
        yield from network_lines(rows)
    yield from routed_lines(rows)
    yield from inference_lines(rows)


def network_lines(rows: dict[tuple[object, ...], dict]) -> Iterator[str]:
    """The rows of networks, which files of the first version lack."""
    for kind in ("integer", "real"):
        row = rows[f"n=24 s=64 {kind} weights", "seconds"]
        verdict = "" if row["met"] else ", missed"
        yield _line(f"active units at all 2^24 points, s = 64, {kind} weights", "-", "2 s", _spread(row) + verdict)
    work, name = "Index_10 m=100,000", "values of Index_10, n = 1034, s = 1024, 100k points"
    ratio = rows[work, "times as fast"]
    ours, theirs = (_spread(rows[work, f"{side}, seconds"]) for side in ("ours", "dense"))
    verdict = "" if ratio["met"] else ", missed"
    yield _line(name, "dense NumPy", "8x", f"{ratio['value']:.1f}x ({ours} against {theirs}){verdict}")
    works = {str(work) for work, _ in rows if str(work).startswith("n=10,000 ")}
    slowest = max((rows[work, "average sensitivity to 1 %"] for work in works), key=lambda row: row["value"])
    verdict = "" if slowest["met"] else ", missed"
    name = f"average sensitivity to 1 %, n = 10,000, s = 1,000, the slowest of {len(works)} networks"
    yield _line(name, "-", "30 s", _spread(slowest) + verdict)
    for work in ("Index_4, n=20 s=16", *(f"lifted parity of 8 bits, n=64 s=9, over the {o}" for o in ("cube", "lift"))):
        row = rows[work, "seconds"]
        yield _line(f"certificate by milp: {work}", "-", "60 s", _spread(row) + ("" if row["met"] else ", missed"))
    row = rows["Halfspace n=2,000 weights 1...10", "influences, fractions"]
    yield _line("all influences of a halfspace with 2,000 weights, as fractions", "-", "30 s", _spread(row))


if __name__ == "__main__":
    print("| work | against | bar | measured |\n|---|---|---|---|")
    print("\n".join(lines(newest(Path(sys.argv[1])))))
