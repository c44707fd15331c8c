"""How small activations are against the rest of their row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sparsact.reports.figure import Frame, figure, scale, styled
from sparsact.reports.layer_curves import draw, label, layers

if TYPE_CHECKING:
    from sparsact.inference import Measurement


def frame(measurement: Measurement) -> Frame:
    """A row for each layer and level."""
    shown = layers(measurement)
    return {
        "layer": [label(block) for block in shown for _ in block.levels],
        "multiple of the rms": [level for block in shown for level in block.levels],
        "share of activations": [float(share) for block in shown for share in block.share_within],
        "share of the squared norm": [float(share) for block in shown for share in block.energy_within],
    }


@styled
def plot(frame: Frame) -> Figure:
    """Left, how many lie below a level; right, how much of the norm they hold."""
    drawing = figure(8.4, 4.2)
    axes = drawing.subplots(1, 2)
    above = [i for i, level in enumerate(frame["multiple of the rms"]) if level > 0]  # a logarithmic axis has no zero
    shown: Frame = {name: [values[i] for i in above] for name, values in frame.items()}
    for one, column in zip(axes, ("share of activations", "share of the squared norm"), strict=True):
        draw(one, shown, "multiple of the rms", column)
        scale(one, log_x=10, log_y=0)
        one.set_ylim(-0.02, 1.02)
        one.set_xlabel("|activation| at most, as a multiple of the row's rms")
        one.set_ylabel(column)
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
