"""Figures of the circuits' functions."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, COLOURS, GREY, INK, Chart, Frame, figure, list_axis, styled
from sparsact_papers.experiments import Rows, mean_of
from sparsact_papers.experiments.paper_a.circuits import ERRORS, most_rows
from sparsact_papers.reports.curves import MARKERS, curves, joined

COLUMNS = 4  # panels side by side
WIDEST = 0.25  # standard error of a weight that is not worth drawing


def weight_frame(rows: Rows) -> Frame:
    """Estimated weight of each function at each degree, with its standard error."""
    frame: dict[str, list[Any]] = {"function": [], "coordinates": [], "degree": [], "weight": [], "standard_error": []}
    for function, group in (most_rows(rows) if len(rows) else {}).items():
        first = group[0]
        for degree, (weight, error) in enumerate(zip(first["weights"], first["weight_errors"], strict=True), 1):
            if error < WIDEST:
                for name, value in zip(frame, (function, first["n"], degree, weight, error), strict=True):
                    frame[name].append(value)
    return {**frame}


@styled
def plot_weights(frame: Frame) -> Figure:
    """A line a function, a mark a degree."""
    functions = list(dict.fromkeys(frame["function"]))
    n = dict(zip(frame["function"], frame["coordinates"], strict=True))
    degrees = sorted(set(frame["degree"]))
    drawing = figure(6.0, 1.2 + 0.42 * len(functions))
    axes = drawing.subplots()
    for i, degree in enumerate(degrees):
        at = [j for j, each in enumerate(frame["degree"]) if each == degree]
        axes.errorbar(
            [frame["weight"][j] for j in at],
            [functions.index(frame["function"][j]) + 0.18 * (i - (len(degrees) - 1) / 2) for j in at],
            xerr=[ERRORS * frame["standard_error"][j] for j in at],
            color=COLOURS[i],
            marker=MARKERS[i],
            ms=4.5,
            lw=0,
            elinewidth=1.3,
            label=f"degree {degree}",
        )
    axes.axvline(0, color=INK, lw=0.8)
    list_axis(axes, [f"{function}, n = {n[function]}" for function in functions])
    axes.set_xlabel("share of the variance")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=4)
    return drawing


def error_frame(rows: Rows) -> Frame:
    """Achieved and predicted error of each function and degree: means over seeds, at the size drawn most often."""
    frames = [
        {"function": [function] * len(found["error"])} | found
        for (function,), group in rows.groups("function").items()
        for size in [_size(group)]
        for found in (
            curves(size, series=lambda _: "achieved", x="degree", y="mse", y_name="error", interval=mean_of),
            curves(size, series=lambda _: "predicted", x="degree", y="predicted", y_name="error", interval=mean_of),
        )
    ]
    names = ("function", "series", "degree", "error", "low", "high", "repetitions")
    return joined(*frames) if frames else {name: [] for name in names}


def _size(group: Rows) -> Rows:
    """Rows of the largest training set that was drawn more than once, or the largest."""
    several = [n for (n,), found in group.groups("n_train").items() if len(found.distinct("seed")) > 1]
    return group.where(n_train=max(several or group.column("n_train")))


@styled
def plot_errors(frame: Frame) -> Figure:
    """A panel a function: marks are achieved, dashes predicted, the thin line is the variance."""
    functions = list(dict.fromkeys(frame["function"]))
    n_lines = -(-len(functions) // COLUMNS)
    drawing = figure(9.2, 0.6 + 2.0 * n_lines)
    panels = drawing.subplots(n_lines, COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    points = list(zip(*(frame[name] for name in ("function", "series", "degree", "error", "low", "high")), strict=True))
    for axes, function in zip(panels, functions, strict=False):
        achieved, predicted = (
            [point[2:] for point in points if point[:2] == (function, series)] for series in ("achieved", "predicted")
        )
        degree, error, low, high = zip(*achieved, strict=True)
        axes.plot([p[0] for p in predicted], [p[1] for p in predicted], color=GREY, ls=(0, (4, 2)), label="predicted")
        axes.vlines(degree, low, high, color=BLUE, lw=1.6)
        axes.plot(degree, error, color=BLUE, marker="o", ms=5, lw=0, label="achieved")
        axes.axhline(1, color=INK, lw=0.8, label="variance")
        axes.set_title(function, fontsize=9.5)
        axes.grid(visible=True)
    for axes in panels[len(functions) :]:
        axes.remove()
    panels[0].set_ylim(0, 2)
    drawing.supxlabel("degree", fontsize=10)
    drawing.supylabel("mean squared error / variance", fontsize=10)
    drawing.legend(*panels[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "weights",
        "Weight by degree of circuits' functions",
        f"Estimated without bias from training rows; bars: {ERRORS} standard errors. Wider than ±0.5: left out.",
        weight_frame,
        plot_weights,
    ),
    Chart(
        "errors",
        "Error by degree, predicted and achieved",
        "Marks: mean over training sets on the validation rows; bars: its 95 % interval. Errors above 2 are cut off.",
        error_frame,
        plot_errors,
    ),
)
