"""Networks as values: enumeration, evaluation, sensitivities, certificates, exact spectra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.table.cells import Line, Rows, spread, times, verdict


def enumeration(rows: Rows) -> Iterator[Line]:
    """Active units at every point."""
    for kind in ("integer", "real"):
        row = rows[f"n=24 s=64 {kind} weights", "seconds"]
        name = f"active units at all 2^24 points, s = 64, {kind} weights"
        yield (name, "-", "2 s", spread(row) + verdict(row))


def values(rows: Rows) -> Iterator[Line]:
    """A network evaluated at many points."""
    work, name = "Index_10 m=100,000", "values of Index_10, n = 1034, s = 1024, 100k points"
    ours, theirs = (spread(rows[work, f"{side}, seconds"]) for side in ("ours", "dense"))
    yield (name, "dense NumPy", "8x", f"{times(rows[work, 'times as fast'])} ({ours} against {theirs})")


def sensitivity(rows: Rows) -> Iterator[Line]:
    """Average sensitivity by sampling."""
    works = {work for work, _ in rows if work.startswith("n=10,000 ")}
    if works:
        slowest = max((rows[work, "average sensitivity to 1 %"] for work in works), key=lambda row: row["value"])
        name = f"average sensitivity to 1 %, n = 10,000, s = 1,000, the slowest of {len(works)} networks"
        yield (name, "-", "30 s", spread(slowest) + verdict(slowest))


def certificates(rows: Rows) -> Iterator[Line]:
    """Proofs by mixed-integer programming."""
    for work in ("Index_4, n=20 s=16", *(f"lifted parity of 8 bits, n=64 s=9, over the {o}" for o in ("cube", "lift"))):
        row = rows[work, "seconds"]
        yield (f"certificate by milp: {work}", "-", "60 s", spread(row) + verdict(row))


def spectra(rows: Rows) -> Iterator[Line]:
    """Influences in exact arithmetic."""
    row = rows["Halfspace n=2,000 weights 1...10", "influences, fractions"]
    yield ("all influences of a halfspace with 2,000 weights, as fractions", "-", "30 s", spread(row) + verdict(row))


SECTIONS: Final = (enumeration, values, sensitivity, certificates, spectra)
