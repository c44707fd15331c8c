"""How many units are on at once: the share of points by number of active units."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, Frame, figure, styled
from sparsact.reports.network_summary import Activity

MOST_LABELS = 12


def frame(activity: Activity) -> Frame:
    """A row for each number of active units that occurs, and for those below it."""
    return {"active units": list(range(len(activity.shares))), "share of points": list(activity.shares)}


@styled
def plot(frame: Frame) -> Figure:
    """A bar a number."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    bars = axes.bar(frame["active units"], frame["share of points"], width=0.7, color=BLUE)
    if len(bars) <= MOST_LABELS:
        axes.bar_label(bars, fmt="{:.3g}", padding=3, fontsize=9)
        axes.set_xticks(list(frame["active units"]))
    axes.grid(visible=True, axis="y")
    axes.margins(y=0.12)
    axes.set_xlabel("active units")
    axes.set_ylabel("share of points")
    return drawing
