"""The strongest coefficients with their intervals."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, GREY, VERMILION, Frame, figure, list_axis, rows, styled, width_for
from sparsact.reports.summary import TargetSummary

SHOWN = 20


def frame(target: TargetSummary) -> Frame:
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


@styled
def plot(frame: Frame) -> Figure:
    """A dot and its interval for each; blue raises the target where the product of signs is +1, vermilion lowers it."""
    shown = list(rows(frame))[:SHOWN]
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
