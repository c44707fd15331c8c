"""Which columns matter to an LSH model: slopes of its trend, and weights in its local directions."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, GREY, PALE, SKY, VERMILION, Frame, figure, list_axis, styled, width_for
from sparsact.reports.lsh_summary import LSHSummary

SHOWN = 30
LEAST_REACH = 0.1  # of the axis of slopes: smaller ones should look small
LEADING = 2  # directions with a colour of their own


def frame(tables: LSHSummary) -> Frame:
    """Columns from the largest share in all local directions down."""
    ranked = sorted(tables.columns, key=lambda column: -sum(column.shares))
    directions = {
        f"direction {i + 1}": [column.shares[i] for column in ranked] for i in range(len(tables.columns[0].shares))
    }
    return {
        "column": [column.column for column in ranked],
        "share of all directions": [sum(column.shares) for column in ranked],
        "slope of the trend": [column.trend for column in ranked],
        **directions,
    }


@styled
def plot(frame: Frame) -> Figure:
    """Left: shares in the local directions, stacked. Right: slopes of the trend."""
    names = [str(name) for name in frame["column"][:SHOWN]]
    drawing = figure(width_for(names) + 3.2, 1.3 + 0.25 * max(len(names), 3))
    left, right = drawing.subplots(1, 2, sharey=True, width_ratios=[1.5, 1])
    places = np.arange(len(names))
    directions = [np.array(values[:SHOWN]) for name, values in frame.items() if name.startswith("direction ")]
    start = np.zeros(len(names))
    for i, (colour, share) in enumerate(zip((BLUE, SKY), directions, strict=False)):
        left.barh(places, share, 0.66, start, color=colour, label=f"direction {i + 1}")
        start = start + share
    if len(directions) > LEADING:
        rest = np.sum(directions[LEADING:], axis=0)
        label = f"directions {LEADING + 1} to {len(directions)}" if len(directions) > LEADING + 1 else "direction 3"
        left.barh(places, rest, 0.66, start, color=PALE, edgecolor=GREY, lw=0.5, hatch="////", label=label)
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
    left.legend(loc="lower right", fontsize=8.5)
    return drawing
