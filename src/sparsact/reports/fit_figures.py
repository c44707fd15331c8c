"""Figures of a fit: how well held-out rows are predicted, by degree, model, row and class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from sparsact.reports.figure import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PALE,
    PAPER_BLUES,
    VERMILION,
    Frame,
    chart,
    figure,
    list_axis,
    rows,
    shortened,
)

if TYPE_CHECKING:
    from sparsact.fit.explain import TargetResult
    from sparsact.fit.scores import Confusion, CVCandidate, FoldScores


def error_frame(candidates: Sequence[CVCandidate]) -> Frame:
    """Share of the variance left unexplained on held-out rows, one row a candidate; ``best`` marks each degree's."""
    best = {max(same, key=lambda c: c.r2.mean) for same in _by_degree(candidates)}
    return {
        "degree": [c.degree for c in candidates],
        "alpha": [c.alpha for c in candidates],
        "unexplained": [1 - c.r2.mean for c in candidates],
        "standard deviation": [c.r2.deviation for c in candidates],
        "best": [c in best for c in candidates],
    }


def _by_degree(candidates: Sequence[CVCandidate]) -> list[list[CVCandidate]]:
    degrees = sorted({c.degree for c in candidates})
    return [[c for c in candidates if c.degree == degree] for degree in degrees]


@chart(
    "error-by-degree",
    "Error by degree",
    error_frame,
    "Each fold was predicted by a model learned from the other folds. Bars: ± one standard deviation.",
)
def error_chart(frame: Frame) -> Figure:
    """The best penalty of each degree with its spread; every other penalty in pale."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    for alpha in sorted(set(frame["alpha"])):
        path = [(d, u) for d, a, u, _, _ in rows(frame) if a == alpha]
        axes.plot(*zip(*path, strict=True), color=PALE, lw=1, marker=".", ms=4, zorder=1)
    best = sorted(row for row in rows(frame) if row[4])
    degree, _, unexplained, deviation, _ = zip(*best, strict=True)
    axes.errorbar(
        degree, unexplained, yerr=deviation, color=BLUE, marker="o", capsize=4, lw=1.8, label="best ridge penalty"
    )
    if len(set(frame["alpha"])) > 1:
        axes.plot([], [], color=PALE, marker=".", label="other penalties")
    axes.axhline(1, color=GREY, lw=1, ls="--", label="mean (learns nothing)")
    if min(unexplained) < 0.2 and min(frame["unexplained"]) > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(top=1.5 * max(1.0, *unexplained) if axes.get_yscale() == "log" else 1.15 * max(1.0, *unexplained))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(min(degree) - 0.4, max(degree) + 0.4)
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree")
    axes.set_ylabel("held-out error / variance (1 − R²)")
    axes.legend(loc="best", fontsize=8.5)
    return drawing


def scores_frame(models: Mapping[str, FoldScores]) -> Frame:
    """Mean, standard deviation and every fold of each model's R2; the last line is the mean of the target."""
    columns: Frame = {
        "model": [*models, "mean"],
        "mean R2": [*(spread.mean for spread in models.values()), 0.0],
        "standard deviation": [*(spread.deviation for spread in models.values()), 0.0],
    }
    folds = zip(*(spread.folds for spread in models.values()), strict=True)
    return columns | {f"fold {i + 1}": [*values, 0.0] for i, values in enumerate(folds)}


@chart(
    "scores",
    "Held-out R² against the baselines",
    scores_frame,
    "Predicting the mean of the target has R² = 0; the linear model uses each column alone.",
)
def scores_chart(frame: Frame) -> Figure:
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


FEW_ROWS = 600  # below it each row is a dot


def residuals_frame(target: TargetResult) -> Frame:
    """Held-out rows; none where they were not predicted."""
    if target.predicted is None:
        return {"actual": [], "predicted": [], "residual": []}
    return {
        "actual": target.actual.tolist(),
        "predicted": target.predicted.tolist(),
        "residual": (target.actual - target.predicted).tolist(),
    }


@chart("residuals", "Predicted, actual and residual", residuals_frame, "")
def residuals_chart(frame: Frame) -> Figure:
    """Left: where each held-out row falls. Right: how residuals spread."""
    drawing = figure(9.2, 3.7)
    left, right = drawing.subplots(1, 2, width_ratios=[1.1, 1])
    actual, predicted = np.array(frame["actual"]), np.array(frame["predicted"])
    _against(left, actual, predicted)
    residual = np.array(frame["residual"])
    right.hist(residual, bins="auto" if len(residual) < FEW_ROWS else 60, color=BLUE, alpha=0.85)
    right.axvline(0, color=GREY, lw=1)
    right.axvline(residual.mean(), color=VERMILION, lw=1.4, ls="--")
    right.set_title(f"mean {residual.mean():.2g} (dashed), standard deviation {residual.std():.3g}", fontsize=9)
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(5))  # numbers may be long
    right.set_xlabel("residual, actual − predicted")
    right.set_ylabel("held-out rows")
    return drawing


def _against(axes: Axes, actual: NDArray[np.float64], predicted: NDArray[np.float64]) -> None:
    if len(actual) < FEW_ROWS:
        axes.scatter(predicted, actual, s=14, color=BLUE, alpha=0.5, lw=0)
    else:
        blues = LinearSegmentedColormap.from_list("paper blues", PAPER_BLUES)
        cells = axes.hexbin(predicted, actual, gridsize=38, mincnt=1, cmap=blues, linewidths=0.2, norm="log")
        bar = axes.figure.colorbar(cells, ax=axes, pad=0.02, format="%g")
        bar.set_label("rows in cell")
    ends = [min(actual.min(), predicted.min()), max(actual.max(), predicted.max())]
    axes.plot(ends, ends, color=VERMILION, lw=1.2, ls="--", label="perfect")
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual (held-out rows)")
    axes.legend(loc="upper left", fontsize=8.5)


LONGEST_LYING = 10  # characters of a name that stands beside its neighbours
SHOWN_COUNTS = 20  # classes beyond which the cells are too small for numbers


def confusion_frame(confusion: Confusion) -> Frame:
    """One row an actual class, one column a predicted class, and the share of the row that is right."""
    counts = confusion.counts
    right = np.diag(counts) / np.maximum(counts.sum(axis=1), 1)
    predicted = {f"predicted {name}": counts[:, j].tolist() for j, name in enumerate(confusion.classes)}
    return {"actual": list(confusion.classes), **predicted, "share right": right.tolist()}


@chart(
    "confusion",
    "Confusion of held-out rows",
    confusion_frame,
    "Each row of the table was predicted by a model that had not seen it.",
)
def confusion_chart(frame: Frame) -> Figure:
    """Cells shaded by share of the actual class, with the counts."""
    classes = [str(name) for name in frame["actual"]]
    counts = np.array([frame[f"predicted {name}"] for name in classes]).T
    labels = [shortened(name) for name in classes]
    side, longest = 2.0 + min(0.46 * len(classes), 8.0), max(map(len, labels), default=0)
    upright = len(classes) >= 12 or longest > LONGEST_LYING
    room = 0.1 * max(0, longest - LONGEST_LYING)  # for long names, down the side and along the foot
    drawing = figure(side + 0.8 + room, side + room)
    axes = drawing.subplots()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts) if len(classes) <= SHOWN_COUNTS else ():
        if count:
            axes.text(
                j, i, str(count), ha="center", va="center", color="white" if share[i, j] > 0.6 else INK, fontsize=9
            )
    axes.set_xticks(range(len(classes)), labels, rotation=90 if upright else 0)
    axes.set_yticks(range(len(classes)), labels)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("actual class (held-out rows)")
    drawing.colorbar(picture, ax=axes, shrink=0.8, label="share of the actual class")
    return drawing


class_scores_chart = replace(
    scores_chart, caption="Of the classes' indicators. Predicting the frequencies of the classes has R² = 0."
)
