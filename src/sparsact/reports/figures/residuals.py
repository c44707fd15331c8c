"""Predicted against actual values of held-out rows, and their residuals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from sparsact.reports.figure import BLUE, GREY, PAPER_BLUES, VERMILION, Frame, figure, styled
from sparsact.reports.summary import TargetSummary

FEW_ROWS = 600  # below it each row is a dot


def frame(target: TargetSummary) -> Frame:
    """Held-out rows; none where they were not predicted."""
    if target.predicted is None:
        return {"actual": [], "predicted": [], "residual": []}
    return {
        "actual": target.actual.tolist(),
        "predicted": target.predicted.tolist(),
        "residual": (target.actual - target.predicted).tolist(),
    }


@styled
def plot(frame: Frame) -> Figure:
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
        cells = axes.hexbin(predicted, actual, gridsize=38, mincnt=1, cmap=PAPER_BLUES, linewidths=0.2, norm="log")
        bar = axes.figure.colorbar(cells, ax=axes, pad=0.02, format="%g")
        bar.set_label("rows in cell")
    ends = [min(actual.min(), predicted.min()), max(actual.max(), predicted.max())]
    axes.plot(ends, ends, color=VERMILION, lw=1.2, ls="--", label="perfect")
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual (held-out rows)")
    axes.legend(loc="upper left", fontsize=8.5)
