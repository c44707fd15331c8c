"""Figures of a measurement model: the latent against what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sparsact.reports.figure import BLUE, GREY, VERMILION, Frame, chart, panel

if TYPE_CHECKING:
    from sparsact.learners import LatentRegressor

CURVE_POINTS: Final = 200


def latent_frame(fitted: tuple[LatentRegressor, NDArray[np.bool_], NDArray[np.float64], NDArray[np.bool_]]) -> Frame:
    """Rows: the latent, what was measured, and whether that is at a bound; then the curve, which was not measured.

    ``fitted`` are a model, and of rows that it was fitted to the bits, the targets, and which of these are at a bound.
    """
    model, X, y, at_bound = fitted
    latent = model.predict_latent(X)
    line = np.linspace(latent.min(), latent.max(), CURVE_POINTS)
    points = np.where(at_bound, "at a bound", "measured")
    return {
        "latent": [*latent.tolist(), *line.tolist()],
        "measured": [*y.tolist(), *model.curve(line).tolist()],
        "point": [*points.tolist(), *["curve"] * len(line)],
    }


@chart(
    "latent",
    "Latent and measured scale",
    latent_frame,
    "Each fitted row, by its latent value and its target. The line is what would be measured without noise. Hollow "
    "points lie at a bound: their true value is there or beyond.",
)
def latent_chart(frame: Frame) -> Axes:
    """A point a row, hollow where it is censored, and the curve."""
    axes = panel(6.4, 4.2, x="latent", y="measured", grid="both")
    latent, measured, point = (np.array(frame[name]) for name in ("latent", "measured", "point"))
    seen, bound = point == "measured", point == "at a bound"
    axes.scatter(latent[seen], measured[seen], s=14, color=BLUE, alpha=0.5, lw=0, label="measured")
    if bound.any():
        axes.scatter(
            latent[bound], measured[bound], s=16, facecolors="none", edgecolors=GREY, lw=0.7, label="at a bound"
        )
    line = point == "curve"
    axes.plot(latent[line], measured[line], color=VERMILION, lw=1.8, label="without noise")
    axes.legend(loc="upper left", fontsize=8.5)
    return axes
