"""Prediction intervals: how many held-out targets they hold, against how many they promise."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sparsact.reports.figure import BLUE, GREY, Frame, figure, styled
from sparsact.reports.lsh_summary import LSHSummary


def frame(tables: LSHSummary) -> Frame:
    """A row for each probability."""
    promised, inside = zip(*tables.coverage, strict=True)
    return {"probability": list(promised), "share inside": list(inside)}


@styled
def plot(frame: Frame) -> Figure:
    """A point for each probability, and the diagonal on which they should lie."""
    drawing = figure(4.6, 3.6)
    axes = drawing.subplots()
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
    axes.grid(visible=True)
    axes.set_xlabel("probability of the interval")
    axes.set_ylabel("held-out targets inside it")
    axes.legend(loc="upper left", fontsize=8.5)
    return drawing
