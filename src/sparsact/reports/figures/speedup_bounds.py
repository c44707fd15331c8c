"""Speed-up bounds: by how much reading fewer bytes can speed up each layer, and the model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, GREY, INK, VERMILION, Frame, figure, list_axis, scale, styled, width_for
from sparsact.reports.layer_curves import label

if TYPE_CHECKING:
    from sparsact.inference import Measurement

METHODS = {"oracle": ("s", GREY), "certified": ("D", VERMILION), "exact": ("o", BLUE)}
WHOLE = "whole model"


def frame(measurement: Measurement) -> Frame:
    """A row for each layer, and one for the whole model; where a method does not apply, None."""
    found = [block.roofline() for block in measurement.blocks]
    return {
        "layer": [*map(label, measurement.blocks), WHOLE],
        **{method: [*(one and one.speedup(method) for one in found), measurement.bound(method)] for method in METHODS},
    }


@styled
def plot(frame: Frame) -> Figure:
    """A mark for each method, a line of marks for each layer."""
    names = [str(name) for name in frame["layer"]]
    drawing = figure(width_for(names), 1.3 + 0.25 * max(len(names), 3))
    axes = drawing.subplots()
    for method, (marker, colour) in METHODS.items():
        drawn = [(x, y) for y, x in enumerate(frame[method]) if x is not None and math.isfinite(x)]
        axes.plot([x for x, _ in drawn], [y for _, y in drawn], marker, color=colour, ms=6, alpha=0.9, label=method)
    list_axis(axes, names)
    axes.axhline(len(names) - 1.5, color=INK, lw=0.8)
    axes.axvline(1, color=INK, lw=0.8)
    scale(axes, log_x=10, log_y=0)
    axes.set_xlim(left=min(0.95, axes.get_xlim()[0]))
    axes.set_xlabel("times as fast as dense, at most")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing
