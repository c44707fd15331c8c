"""Figures of a measurement model: the latent against what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from sparsact.reports.figure import BLUE, GREY, VERMILION, Display, Frame, chart, panel

if TYPE_CHECKING:
    from sparsact.fit.latent_candidate import LatentInfo


def latent_frame(info: LatentInfo) -> Frame:
    """Rows: the latent, what was measured, and whether that is at a bound; then the curve, which was not measured."""
    latents, curve = info.curve
    return {
        "latent": [*info.latent.tolist(), *latents.tolist()],
        "measured": [*info.measured.tolist(), *curve.tolist()],
        "point": [*("at a bound" if one else "measured" for one in info.censored), *["curve"] * len(curve)],
    }


@chart(
    "latent",
    "Latent and measured scale",
    latent_frame,
    "Rows that were fitted, by the latent of the model and the target. The line is what would be measured without "
    "noise; hollow points are at a bound: the truth is there or beyond.",
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


def latent_figures(info: LatentInfo | None) -> list[Display]:
    """The figure of a measurement model, if one was chosen."""
    return [] if info is None else [latent_chart.display(info)]
