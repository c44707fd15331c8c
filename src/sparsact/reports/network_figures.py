"""Figures of a network: how many units are on at once, and the weight of each degree."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sparsact.reports.figure import BLUE, INK, Display, Frame, chart, figure
from sparsact.reports.network_summary import Activity, DegreeWeights, NetworkSummary

MAX_LABELS = 12


def activity_frame(activity: Activity) -> Frame:
    """A row for each number of active units that occurs, and for those below it."""
    return {"active units": list(range(len(activity.shares))), "share of points": list(activity.shares)}


@chart("activity", "Units on at once", activity_frame, "")
def activity_chart(frame: Frame) -> Figure:
    """A bar a number."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    bars = axes.bar(frame["active units"], frame["share of points"], width=0.7, color=BLUE)
    if len(bars) <= MAX_LABELS:
        axes.bar_label(bars, fmt="{:.3g}", padding=3, fontsize=9)
        axes.set_xticks(list(frame["active units"]))
    axes.grid(visible=True, axis="y")
    axes.margins(y=0.12)
    axes.set_xlabel("active units")
    axes.set_ylabel("share of points")
    return drawing


def weights_frame(degrees: DegreeWeights) -> Frame:
    """A row a degree; the standard error is 0 where the weight is exact."""
    total = sum(degrees.weights) or 1.0
    return {
        "degree": list(range(len(degrees.weights))),
        "weight": list(degrees.weights),
        "standard error": list(degrees.errors or [0.0] * len(degrees.weights)),
        "share": [weight / total for weight in degrees.weights],
    }


@chart("degrees", "Weight by degree", weights_frame, "")
def weights_chart(frame: Frame) -> Figure:
    """A bar a degree."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    errors = [2 * error for error in frame["standard error"]]
    axes.bar(
        frame["degree"],
        frame["weight"],
        width=0.7,
        color=BLUE,
        yerr=errors if any(errors) else None,
        ecolor=INK,
        capsize=3,
        label="estimated, ± 2 standard errors" if any(errors) else "exact",
    )
    axes.grid(visible=True, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_ylim(bottom=0)
    axes.margins(y=0.15)
    axes.set_xlabel("degree")
    axes.set_ylabel("weight (squared coefficients)")
    axes.legend(loc="upper right", fontsize=8.5)
    return drawing


FOLDED = (
    "Estimated: inputs with random signs were put into random groups, and every grouping has an exact spectrum. A "
    "product of d inputs keeps its degree unless two of them meet in a group. Bars: ± two standard errors."
)
EXACT = "Sum of the squared Fourier coefficients of all products of this many inputs, exact up to rounding."


def network_figures(summary: NetworkSummary) -> list[Display]:
    """Activity, and weight by degree."""
    note = EXACT if summary.degrees.exact else FOLDED
    return [
        activity_chart.display(summary.activity, note=summary.activity.how),
        weights_chart.display(summary.degrees, note=note),
    ]
