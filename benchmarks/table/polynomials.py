"""The transform, and least squares on monomials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.table.cells import Line, Rows, spread, times, verdict

PIPELINE: Final = "PolynomialFeatures + Ridge(cholesky)"
SIZES: Final = range(14, 25)


def transform(rows: Rows) -> Iterator[Line]:
    """The Walsh-Hadamard transform beside another library, and beside a copy."""
    for dtype in ("float32", "float64"):
        ratios = {n: rows[f"n={n} {dtype}", "times as fast"] for n in SIZES}
        values = [ratio["value"] for ratio in ratios.values()]
        missed = [f"{n} ({ratio['value']:.2f}x)" for n, ratio in ratios.items() if not ratio["met"]]
        which = "met at each" if not missed else "missed at each" if len(missed) == len(ratios) else ""
        shown = f"{min(values):.2f}x to {max(values):.2f}x, " + (which or f"missed at n = {', '.join(missed)}")
        name = f"Walsh-Hadamard, n = {SIZES[0]}, {SIZES[1]}, ... {SIZES[-1]}, {dtype}"
        bars = " or ".join(f"{bar:g}x" for bar in sorted({ratio["least"] for ratio in ratios.values()}))
        yield (name, "fht-cpu 1.0.1", f"{bars} at each n", shown)
        found = [rows[f"n={n} {dtype}", "copies"] for n in SIZES[-5:]]
        least, worst = min(row["value"] for row in found), max(found, key=lambda row: row["value"])
        shown = f"{least:.1f} to {worst['value']:.1f} copies{verdict(worst)}"
        yield (f"Walsh-Hadamard, n = 20 ... 24, {dtype}", "a memory copy", "at most 2.3 copies at each n", shown)


def least_squares(rows: Rows) -> Iterator[Line]:
    """Fits and predictions beside scikit-learn's road."""
    for work, name in (("n=20 d=3 m=100,000", "(n, d, m) = (20, 3, 100k)"), ("n=50 d=2 m=100,000", "(50, 2, 100k)")):
        shown = f"{times(rows[work, 'fit, times as fast'])} ({_both(rows, work)})"
        yield (f"fit, {name}, time", PIPELINE, f"{rows[work, 'fit, times as fast']['least']:g}x", shown)
        megabytes = [rows[work, f"memory {side}"]["value"] for side in ("ours", "theirs")]
        share = f"1/{megabytes[1] / megabytes[0]:.0f} ({megabytes[0]:.0f} MB against {megabytes[1]:.0f} MB)"
        yield ("the same, peak memory above the data", "the same", "at most 1/5", share)
        difference = rows[work, "difference of predictions"]["value"]
        yield ("the same, difference of predictions", "the same", "1e-8 relative", f"{difference:.0e}")
        first, later = (times(rows[work, f"{which}, times as fast"]) for which in ("first predict", "predict"))
        yield ("predict 100k rows, the same model", "the same", "20x", f"{later}; after a fit {first}")


def _both(rows: Rows, work: str) -> str:
    ours, theirs = (spread(rows[work, f"fit {side}, seconds"]) for side in ("ours", "theirs"))
    return f"{ours} against {theirs}"


def large(rows: Rows) -> Iterator[Line]:
    """A million rows."""
    for work, name, bar in (
        ("n=20 d=10 m=1,000,000", "fit, (20, 10, 1M): 616,666 monomials", "20 s, 2 GB"),
        ("n=100 d=2 m=1,000,000 Parquet", "fit, (100, 2, 1M) streamed from Parquet", "120 s, 2 GB"),
    ):
        seconds, memory = rows[work, "fit"]["value"], rows[work, "peak memory"]["value"]
        yield (name, "-", bar, f"{seconds:.1f} s, {memory:.2f} GB")


def cross_validation(rows: Rows) -> Iterator[Line]:
    """Every degree, penalty and fold."""
    work = "n=20 m=100,000 3 degrees 20 alphas 5 folds"
    part = "EXTRAPOLATED from 6 of 300 fits"
    theirs, ours = rows[work, f"GridSearchCV, {part}"]["value"], rows[work, "ours"]["value"]
    shown = f"{times(rows[work, 'times as fast'])} ({ours:.1f} s against {theirs:.0f} s, {part}), equal scores"
    yield ("cross-validation, degrees 1-3, 20 penalties, 5 folds, n = 20, m = 100k", "GridSearchCV", "50x", shown)


SECTIONS: Final = (transform, least_squares, large, cross_validation)
