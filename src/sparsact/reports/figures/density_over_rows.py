"""Distribution of the density over rows, by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import Frame, figure, styled
from sparsact.reports.layer_curves import draw, label, layers

if TYPE_CHECKING:
    from sparsact.inference import Measurement

MOST_POINTS = 200  # of a curve


def frame(measurement: Measurement) -> Frame:
    """Steps of the distribution function of each layer, from the density of the sparsest row to that of the densest."""
    names: list[str] = []
    densities: list[float] = []
    shares: list[float] = []
    for block in layers(measurement):
        occurring = np.flatnonzero(block.rows_by_active)
        at = np.arange(max(occurring[0] - 1, 0), occurring[-1] + 1)
        at = at[np.unique(np.linspace(0, len(at) - 1, MOST_POINTS).round().astype(int))]
        names += [label(block)] * len(at)
        densities += (at / block.n_units).tolist()
        shares += (block.rows_by_active.cumsum()[at] / block.n_rows).tolist()
    return {"layer": names, "density": densities, "share of rows": shares}


@styled
def plot(frame: Frame) -> Figure:
    """A step function a layer."""
    drawing = figure(5.4, 4.2)
    axes = drawing.subplots()
    shown = {**frame, "density": [100 * density for density in frame["density"]]}
    draw(axes, shown, "density", "share of rows", drawstyle="steps-post")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("active units, % of all in the layer")
    axes.set_ylabel("share of rows with at most so many")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
