"""Figures of a polynomial: weight by degree, what degrees add, influences of columns, strongest interactions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from sparsact.reports.figure import BLUE, GREY, VERMILION, Frame, chart, figure, list_axis, rows, width_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparsact.fit.explain import TargetResult
    from sparsact.fit.scores import Gain


def weights_frame(target: TargetResult) -> Frame:
    """Sum of squared coefficients of each degree, itself and as a share of the target's variance."""
    shares = [weight / target.variance for weight in target.weights]
    return {
        "degree": list(range(1, len(target.weights) + 1)),
        "weight": list(target.weights),
        "share of variance": shares,
        "cumulative share": list(accumulate(shares)),
    }


@chart(
    "weights",
    "Weight by degree",
    weights_frame,
    "The rows are every combination of bits, equally often, so the parts add up to the variance.",
)
def weights_chart(frame: Frame) -> Figure:
    """A bar a degree, and the running sum."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    degree, share, total = frame["degree"], frame["share of variance"], frame["cumulative share"]
    axes.bar(degree, share, width=0.6, color=BLUE, label="this degree")
    axes.plot(degree, total, color=VERMILION, marker="D", ms=5, lw=1.6, label="up to this degree")
    axes.set_xticks(degree, [f"{d}\n{s:.1%}" for d, s in zip(degree, share, strict=True)])
    axes.set_xlim(0.4, max(degree) + 0.6)
    axes.set_ylim(0, 1.3 * max(*total, 1e-9))
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree and its share")
    axes.set_ylabel("share of the target's variance")
    axes.legend(loc="upper left", ncols=2, fontsize=8.5)
    return drawing


def gains_frame(found: Sequence[Gain]) -> Frame:
    """R² added by each degree to the lower ones, with its 95 % interval."""
    return {
        "degree": [gain.degree for gain in found],
        "R² added": [gain.r2 for gain in found],
        "low (95 %)": [gain.low for gain in found],
        "high (95 %)": [gain.high for gain in found],
    }


@chart(
    "gains",
    "What each degree adds",
    gains_frame,
    "What each degree adds to the R² of the lower ones on rows that were not seen; bars: 95 % intervals. The squares "
    "of the coefficients are shares of the variance only where every combination of bits is equally frequent, which "
    "these rows are not.",
)
def gains_chart(frame: Frame) -> Figure:
    """A bar and its interval for each degree."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    degree, added = frame["degree"], frame["R² added"]
    reach = [high - value for high, value in zip(frame["high (95 %)"], added, strict=True)]
    axes.bar(degree, added, width=0.6, color=BLUE, yerr=reach, ecolor=GREY, capsize=4)
    axes.axhline(0, color=GREY, lw=1)
    axes.set_xticks(degree, [f"{d}\n{r2:.1%}" for d, r2 in zip(degree, added, strict=True)])
    axes.set_xlim(min(degree) - 0.6, max(degree) + 0.6)
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree and what it adds")
    axes.set_ylabel("held-out R² added")
    return drawing


COLUMNS_SHOWN = 30


def influences_frame(target: TargetResult) -> Frame:
    """Columns from the most influential down."""
    ranked = sorted(target.influences, key=lambda pair: -pair[1])
    return {
        "column": [name for name, _ in ranked],
        "influence": [influence for _, influence in ranked],
        "share of variance": [influence / target.variance for _, influence in ranked],
    }


@chart(
    "influences",
    "Influence of each column",
    influences_frame,
    "Mean square, over the rows, of the part of the polynomial that holds the column, as a share of the target's "
    "variance. Parts of several columns overlap, and may cancel where columns go together.",
)
def influences_chart(frame: Frame) -> Figure:
    """A bar a column."""
    share = list(frame["share of variance"][:COLUMNS_SHOWN])
    names = list(frame["column"][:COLUMNS_SHOWN])
    drawing = figure(width_for(names), 0.9 + 0.25 * max(len(share), 2))
    axes = drawing.subplots()
    bars = axes.barh(range(len(share)), share, height=0.66, color=BLUE)
    axes.bar_label(bars, fmt="%.3g", padding=4, fontsize=9)
    axes.margins(x=0.1)
    list_axis(axes, names)
    axes.set_xlabel("influence, as a share of the target's variance")
    return drawing


TERMS_SHOWN = 20


def interactions_frame(target: TargetResult) -> Frame:
    """Coefficients from the largest down, by absolute value."""
    terms = sorted(target.terms, key=lambda term: -abs(term.coefficient))
    return {
        "columns": [term.label for term in terms],
        "degree": [len(term.subset) for term in terms],
        "coefficient": [term.coefficient for term in terms],
        "low (95 %)": [term.low for term in terms],
        "high (95 %)": [term.high for term in terms],
        "same on these rows": [", ".join(term.aliases) for term in terms],
    }


@chart(
    "interactions",
    "Strongest interactions",
    interactions_frame,
    "The largest coefficients by absolute value, in units of the target.",
)
def interactions_chart(frame: Frame) -> Figure:
    """A dot and its interval for each; blue raises the target where the product of signs is +1, vermilion lowers it."""
    shown = list(rows(frame))[:TERMS_SHOWN]
    drawing = figure(width_for([label for label, *_ in shown]), 0.9 + 0.27 * max(len(shown), 2))
    axes = drawing.subplots()
    for place, (_, _, coefficient, low, high, _) in enumerate(shown):
        colour, marker = (BLUE, "o") if coefficient > 0 else (VERMILION, "s")
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=colour, lw=2.2, alpha=0.55, solid_capstyle="butt")
        axes.plot(coefficient, place, marker=marker, ms=5.5, color=colour, mfc="white" if low is None else colour)
    axes.axvline(0, color=GREY, lw=1)
    list_axis(axes, [label for label, *_ in shown])
    axes.plot([], [], "o", color=BLUE, label="positive")
    axes.plot([], [], "s", color=VERMILION, label="negative")
    drawing.legend(loc="outside upper right", ncols=2, fontsize=8.5)
    axes.set_xlabel("coefficient (bar: 95 % interval)")
    return drawing
