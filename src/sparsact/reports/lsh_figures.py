"""Figures of an LSH model: bucket load, error against cost, columns that matter, coverage of intervals."""

from __future__ import annotations

from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from sparsact.reports.figure import (
    BLUE,
    GREEN,
    GREY,
    INK,
    VERMILION,
    Display,
    Frame,
    chart,
    legend_above,
    list_axis,
    panel,
    panels,
    rows,
    width_for,
)

if TYPE_CHECKING:
    from sparsact.fit.candidates.lsh_details import LayoutInfo

MOST_TICKS: Final = 7


def load_frame(tables: LayoutInfo) -> Frame:
    """Buckets by load, in classes 1, 2-3, 4-7, 8-15, ... rows, and the share of all rows that lie in each class."""
    load = tables.load
    most = max((rows for rows, _ in load), default=1)
    edges = [2**i for i in range(most.bit_length() + 1)]
    total = sum(rows * buckets for rows, buckets in load)
    classes = [[(r, b) for r, b in load if low <= r < high] for low, high in pairwise(edges)]
    return {
        "rows from": edges[:-1],
        "rows to": [edge - 1 for edge in edges[1:]],
        "buckets": [sum(b for _, b in held) for held in classes],
        "share of rows": [sum(r * b for r, b in held) / total for held in classes],
    }


def short(count: float) -> str:
    """A number of rows or buckets, short enough for an axis.

    >>> short(512), short(4096), short(2**20)
    ('512', '4.1k', '1M')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.2g}{unit}"
    return f"{count:.0f}"


@chart(
    "bucket-load",
    "Bucket load",
    load_frame,
    "Above: how many buckets hold a given number of rows. Below: how many rows lie in such buckets. A bucket with one "
    "row predicts poorly; a very full one averages over a large cell.",
)
def load_chart(frame: Frame) -> Axes:
    """Above, buckets of each load; below, the rows in them."""
    upper, lower = panels(4.6, 4.2, 2, 1, sharex=True)
    left = list(frame["rows from"])
    width = [high + 1 - low for low, high in zip(left, frame["rows to"], strict=True)]
    style: dict[str, Any] = {"align": "edge", "edgecolor": "white", "linewidth": 0.8}
    upper.bar(left, frame["buckets"], width, color=BLUE, **style)
    lower.bar(left, frame["share of rows"], width, color=VERMILION, **style)
    upper.set_yscale("log")
    upper.set_ylim(bottom=0.7)
    upper.set_ylabel("buckets")
    lower.set_ylabel("share of all rows")
    lower.set_xscale("log", base=2)
    lower.xaxis.set_major_locator(LogLocator(base=2, numticks=MOST_TICKS))
    for axis in (lower.xaxis, upper.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    upper.yaxis.set_minor_formatter(NullFormatter())
    lower.xaxis.set_minor_formatter(NullFormatter())
    lower.set_xlim(1, left[-1] + width[-1])
    lower.set_xlabel("rows in a bucket")
    for axes in (upper, lower):
        axes.grid(visible=True, axis="y")
    return lower


KIND_COLOURS: Final = {"gradients": BLUE, "standard": VERMILION, "principal": GREEN}
NEAR_TREND: Final = 0.7  # errors from which on the trend's own is worth a line
WIDE: Final = 8.0  # range of costs with fewer labels
KIND_MARKERS: Final = {"gradients": "o", "standard": "s", "principal": "^"}


def layouts_frame(tables: LayoutInfo) -> Frame:
    """One row a layout, the best penalty of each; errors are over that of the linear trend."""
    best = {}
    for trial in sorted(tables.trials, key=lambda trial: (trial.chosen, -trial.error)):
        best[trial.directions, trial.n_rows, trial.bucket_width] = trial
    shown = sorted(best.values(), key=attrgetter("directions", "n_rows", "n_bytes"))
    names = ("directions", "n_rows", "bucket_width", "alpha", "n_buckets", "n_bytes", "error", "chosen", "degree")
    heads = ("directions", "rows", "width", "ridge penalty", "buckets", "bytes", "error", "chosen", "degree")
    return {head: [getattr(trial, name) for trial in shown] for head, name in zip(heads, names, strict=True)}


@chart(
    "layouts",
    "Error against cost",
    layouts_frame,
    "Each point is a width of the cells, with its best degree and penalty; narrower cells cost more memory. Each row "
    "was predicted by its buckets without it. For a large table, kinds of directions are first compared on fewer "
    "rows (dashed).",
)
def layouts_chart(frame: Frame) -> Axes:
    """A line for each kind of directions and number of rows; a ring about the chosen layout."""
    axes = panel(
        4.6, 4.2, x="cost: memory of the tables / MB", y="error left out / error of the linear trend", grid="both"
    )
    tried = list(rows(frame))
    most = max(row[1] for row in tried)
    for kind, n_rows in sorted({(row[0], row[1]) for row in tried}, key=lambda pair: (-pair[1], pair[0])):
        line = [(row[5] / 1e6, row[6]) for row in tried if (row[0], row[1]) == (kind, n_rows)]
        whole = n_rows == most
        axes.plot(
            *zip(*line, strict=True),
            color=KIND_COLOURS.get(kind, INK),
            marker=KIND_MARKERS.get(kind, "D"),
            markerfacecolor=None if whole else "white",
            ls="-" if whole else (0, (3, 2)),
            ms=5,
            lw=1.6 if whole else 1.1,
            label=f"{kind}, {n_rows:,} rows",
        )
    for row in tried:
        if row[7]:
            axes.plot(row[5] / 1e6, row[6], "o", ms=13, mfc="none", mec=INK, mew=1.6, ls="none", label="chosen")
    if max(row[6] for row in tried) > NEAR_TREND:
        axes.axhline(1, color=GREY, lw=1, ls="--", label="linear trend alone")
    axes.set_xscale("log")
    wide = max(row[5] for row in tried) > WIDE * min(row[5] for row in tried)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if wide else (1, 1.5, 2, 3, 5, 7), numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.margins(x=0.08, y=0.1)
    legend_above(axes)
    return axes


SHOWN: Final = 30
LEAST_REACH: Final = 0.1  # of the axis of slopes: smaller ones should look small


def columns_frame(tables: LayoutInfo) -> Frame:
    """Columns from the largest share of the local distance down."""
    ranked = sorted(tables.columns, key=lambda column: -column.share)
    return {
        "column": [column.column for column in ranked],
        "share": [column.share for column in ranked],
        "slope of the trend": [column.trend for column in ranked],
    }


@chart(
    "columns",
    "Columns that matter",
    columns_frame,
    "Left: how much each column decides which rows are near each other, largest first; the buckets ignore a column "
    "without a share. Right: slope of the linear trend that is subtracted first, in standard deviations of the target "
    "for one of the column.",
)
def columns_chart(frame: Frame) -> Axes:
    """Left: shares of the local distance. Right: slopes of the trend."""
    names = [str(name) for name in frame["column"][:SHOWN]]
    height = 1.3 + 0.25 * max(len(names), 3)
    left, right = panels(width_for(names) + 3.2, height, 1, 2, sharey=True, width_ratios=[1.5, 1])
    places = np.arange(len(names))
    left.barh(places, list(frame["share"][:SHOWN]), 0.66, color=BLUE)
    right.barh(places, list(frame["slope of the trend"][:SHOWN]), 0.5, color=VERMILION)
    right.axvline(0, color=GREY, lw=1)
    slopes = frame["slope of the trend"][:SHOWN]
    right.set_xlim(1.12 * min(-LEAST_REACH, *slopes), 1.12 * max(LEAST_REACH, *slopes))
    list_axis(left, names)
    left.set_xlim(left=0)
    right.grid(visible=True, axis="x")
    right.tick_params(axis="y", length=0)
    right.spines["left"].set_visible(False)
    left.set_xlabel("share of the squared local distance")
    right.set_xlabel("slope of the trend,\nstandardised")
    return left


def coverage_frame(tables: LayoutInfo) -> Frame:
    """A row for each probability."""
    probability, inside = zip(*tables.coverage, strict=True)
    return {"probability": probability, "share inside": inside}


@chart(
    "coverage",
    "Coverage of prediction intervals",
    coverage_frame,
    "How many held-out targets lie in intervals of a given probability; the width follows the variance of the targets "
    "in the buckets. Above the diagonal the intervals are too wide, below it too narrow.",
)
def coverage_chart(frame: Frame) -> Axes:
    """A point for each probability, and the diagonal on which they should lie."""
    axes = panel(4.6, 3.6, x="probability of the interval", y="held-out targets inside it", grid="both")
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--", label="as promised")
    axes.plot(frame["probability"], frame["share inside"], color=BLUE, marker="o", lw=1.6, label="held-out rows")
    for promised, inside in zip(frame["probability"], frame["share inside"], strict=True):
        if promised in (0.5, 0.9):
            axes.annotate(f"{inside:.1%}", (promised, inside), (8, -12), textcoords="offset points", fontsize=9)
    low = min(0.4, *frame["share inside"]) - 0.05
    axes.set_xlim(0.45, 1.02)
    axes.set_ylim(max(0.0, low), 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.legend(loc="upper left", fontsize=8.5)
    return axes


KINDS: Final = {
    "gradients": "The directions are those along which the target moves beyond the trend, so a share tells how much it "
    "depends on the column.",
    "standard": "The directions are the principal ones of the standardised columns: they tell how the rows lie, not "
    "what the target depends on.",
    "principal": "The directions are the principal ones of the rows: they tell how these lie, not what the target "
    "depends on.",
}


def lsh_figures(tables: LayoutInfo) -> tuple[Display, ...]:
    """Load, error against cost, columns and coverage, as far as they are known."""
    drawn = [load_chart.display(tables)]
    if tables.trials:
        drawn.append(layouts_chart.display(tables))
    drawn.append(columns_chart.display(tables, note=KINDS[tables.directions]))
    if tables.coverage:
        drawn.append(coverage_chart.display(tables))
    return tuple(drawn)
