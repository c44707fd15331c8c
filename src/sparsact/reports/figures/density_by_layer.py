"""Density by layer: mean over rows, and the range of most of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, SKY, Frame, figure, list_axis, styled, width_for
from sparsact.reports.layer_curves import label

if TYPE_CHECKING:
    from sparsact.inference import Measurement


def frame(measurement: Measurement) -> Frame:
    """A row for each layer, in the order of the model."""
    blocks = measurement.blocks
    return {
        "layer": [label(block) for block in blocks],
        "mean density": [block.density for block in blocks],
        "5 % of rows below": [block.density_quantile(0.05) for block in blocks],
        "95 % of rows below": [block.density_quantile(0.95) for block in blocks],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A dot and a bar a layer."""
    names = [str(name) for name in frame["layer"]]
    drawing = figure(width_for(names), 1.2 + 0.25 * max(len(names), 3))
    axes = drawing.subplots()
    low, high = ([100 * value for value in frame[f"{q} % of rows below"]] for q in (5, 95))
    places = range(len(names))
    axes.hlines(places, low, high, color=SKY, lw=5, label="5 % to 95 % of rows")
    axes.plot(
        [100 * mean for mean in frame["mean density"]], places, "o", color=BLUE, ms=6, clip_on=False, label="mean"
    )
    list_axis(axes, names)
    axes.set_xlim(0, 1.05 * max(*high, *(100 * mean for mean in frame["mean density"]), 1))
    axes.set_xlabel("active units, % of all in the layer")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
