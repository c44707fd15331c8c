"""How much each column takes part in the directions that the grids are laid along."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.frame import Frame
from sparsact.reports.hash_summary import HashSummary
from sparsact.reports.style import BLUE, figure, list_axis, styled, width_for

SHOWN = 30


def frame(summary: HashSummary) -> Frame:
    """Columns from the largest share down."""
    ranked = sorted(summary.column_shares, key=lambda pair: -pair[1])
    return {"column": [name for name, _ in ranked], "share": [share for _, share in ranked]}


@styled
def plot(frame: Frame) -> Figure:
    """A bar a column."""
    share, names = list(frame["share"][:SHOWN]), list(frame["column"][:SHOWN])
    drawing = figure(width_for(names), 0.9 + 0.25 * max(len(share), 2))
    axes = drawing.subplots()
    bars = axes.barh(range(len(share)), share, height=0.66, color=BLUE)
    axes.bar_label(bars, fmt="%.2g", padding=4, fontsize=9)
    axes.margins(x=0.1)
    list_axis(axes, names)
    axes.set_xlabel("share of the squared directions (standard units)")
    return drawing
