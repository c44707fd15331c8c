"""Held-out R2 of the chosen model against the others and the mean."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, GREEN, GREY, VERMILION, Frame, figure, list_axis, styled
from sparsact.reports.summary import Spread


def frame(models: Mapping[str, Spread]) -> Frame:
    """Mean, standard deviation and every fold of each model's R2; the last line is the mean of the target."""
    columns: Frame = {
        "model": [*models, "mean"],
        "mean R2": [*(spread.mean for spread in models.values()), 0.0],
        "standard deviation": [*(spread.deviation for spread in models.values()), 0.0],
    }
    folds = zip(*(spread.folds for spread in models.values()), strict=True)
    return columns | {f"fold {i + 1}": [*values, 0.0] for i, values in enumerate(folds)}


@styled
def plot(frame: Frame) -> Figure:
    """One line a model: a dot a fold, the mean and its spread."""
    n = len(frame["model"])
    drawing = figure(6.8, 0.6 + 0.5 * n)
    axes = drawing.subplots()
    folds = [values for name, values in frame.items() if name.startswith("fold ")]
    colours = [BLUE, *(colour for _, colour in zip(range(n - 2), cycle((VERMILION, GREEN)), strict=False)), GREY]
    for place, colour in enumerate(colours):
        mean, deviation = frame["mean R2"][place], frame["standard deviation"][place]
        axes.scatter([values[place] for values in folds], [place] * len(folds), s=26, color=colour, alpha=0.35, lw=0)
        axes.errorbar(mean, place, xerr=deviation, fmt="D", ms=6, color=colour, capsize=4, lw=1.6)
        axes.annotate(f"{mean:.3f}", (mean, place), (0, 8), textcoords="offset points", ha="center", color=colour)
    axes.axvline(0, color=GREY, lw=1, ls="--", zorder=0, ymax=0.84 / n)
    axes.margins(x=0.08)
    list_axis(axes, list(frame["model"]))
    axes.set_xlabel("R² on held-out rows (dots: folds; bar: ± one standard deviation)")
    return drawing
