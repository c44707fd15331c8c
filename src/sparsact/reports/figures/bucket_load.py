"""Bucket load: how many rows the buckets of an LSH model hold."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sparsact.reports.figure import BLUE, VERMILION, Frame, figure, styled
from sparsact.reports.lsh_summary import LSHSummary

MOST_TICKS = 7


def frame(tables: LSHSummary) -> Frame:
    """Buckets by load, in classes 1, 2-3, 4-7, 8-15, ... rows, and the share of all rows that lie in each class."""
    most = max((rows for rows, _ in tables.load), default=1)
    edges = [2**i for i in range(most.bit_length() + 1)]
    total = sum(rows * buckets for rows, buckets in tables.load)
    classes = [[(r, b) for r, b in tables.load if low <= r < high] for low, high in pairwise(edges)]
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


@styled
def plot(frame: Frame) -> Figure:
    """Above, buckets of each load; below, the rows in them."""
    drawing = figure(4.6, 4.2)
    upper, lower = drawing.subplots(2, 1, sharex=True)
    left = list(frame["rows from"])
    width = [high + 1 - low for low, high in zip(left, frame["rows to"], strict=True)]
    style = {"align": "edge", "edgecolor": "white", "linewidth": 0.8}
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
    return drawing
