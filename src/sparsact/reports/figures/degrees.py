"""Held-out error by degree: the cross-validation curve."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sparsact.reports.figure import BLUE, GREY, PALE, Frame, figure, rows, styled
from sparsact.reports.summary import CVCandidate


def frame(candidates: Sequence[CVCandidate]) -> Frame:
    """Share of the variance left unexplained on held-out rows, one row a candidate; ``best`` marks each degree's."""
    best = {max(same, key=lambda c: c.r2.mean) for same in _by_degree(candidates)}
    return {
        "degree": [c.degree for c in candidates],
        "alpha": [c.alpha for c in candidates],
        "unexplained": [1 - c.r2.mean for c in candidates],
        "standard deviation": [c.r2.deviation for c in candidates],
        "best": [c in best for c in candidates],
    }


def _by_degree(candidates: Sequence[CVCandidate]) -> list[list[CVCandidate]]:
    degrees = sorted({c.degree for c in candidates})
    return [[c for c in candidates if c.degree == degree] for degree in degrees]


@styled
def plot(frame: Frame) -> Figure:
    """The best penalty of each degree with its spread; every other penalty in pale."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    for alpha in sorted(set(frame["alpha"])):
        path = [(d, u) for d, a, u, _, _ in rows(frame) if a == alpha]
        axes.plot(*zip(*path, strict=True), color=PALE, lw=1, marker=".", ms=4, zorder=1)
    best = sorted(row for row in rows(frame) if row[4])
    degree, _, unexplained, deviation, _ = zip(*best, strict=True)
    axes.errorbar(
        degree, unexplained, yerr=deviation, color=BLUE, marker="o", capsize=4, lw=1.8, label="best ridge penalty"
    )
    if len(set(frame["alpha"])) > 1:
        axes.plot([], [], color=PALE, marker=".", label="other penalties")
    axes.axhline(1, color=GREY, lw=1, ls="--", label="mean (learns nothing)")
    if min(unexplained) < 0.2 and min(frame["unexplained"]) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(top=1.5 * max(1.0, *unexplained) if axes.get_yscale() == "log" else 1.15 * max(1.0, *unexplained))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(min(degree) - 0.4, max(degree) + 0.4)
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree")
    axes.set_ylabel("held-out error / variance (1 − R²)")
    axes.legend(loc="best", fontsize=8.5)
    return drawing
