"""Influence of each column: the share of variance in which it takes part."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, Frame, figure, list_axis, styled, width_for
from sparsact.reports.summary import TargetSummary

SHOWN = 30


def frame(target: TargetSummary) -> Frame:
    """Columns from the most influential down."""
    ranked = sorted(target.influences, key=lambda pair: -pair[1])
    return {
        "column": [name for name, _ in ranked],
        "influence": [influence for _, influence in ranked],
        "share of variance": [influence / target.variance for _, influence in ranked],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A bar a column."""
    share = list(frame["share of variance"][:SHOWN])
    names = list(frame["column"][:SHOWN])
    drawing = figure(width_for(names), 0.9 + 0.25 * max(len(share), 2))
    axes = drawing.subplots()
    bars = axes.barh(range(len(share)), share, height=0.66, color=BLUE)
    axes.bar_label(bars, fmt="%.3g", padding=4, fontsize=9)
    axes.margins(x=0.1)
    list_axis(axes, names)
    axes.set_xlabel("influence, as a share of the target's variance")
    return drawing
