"""Units by frequency: in what share of the rows each is active."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import Frame, figure, scale, styled
from sparsact.reports.layer_curves import draw, label, layers

if TYPE_CHECKING:
    from sparsact.inference import Measurement

MOST_POINTS = 200  # of a curve


def frame(measurement: Measurement) -> Frame:
    """Units of each layer from the most frequent down, some of them where they are many; dead units end a curve."""
    names: list[str] = []
    ranks: list[float] = []
    shares: list[float | None] = []
    for block in layers(measurement):
        sorted_down = np.sort(block.frequency)[::-1]
        alive = block.n_units - block.n_dead
        at = np.unique(np.linspace(0, max(alive - 1, 0), MOST_POINTS).round().astype(int))
        names += [f"{label(block)}: {block.n_dead:,} dead of {block.n_units:,}"] * len(at)
        ranks += ((at + 1) / block.n_units).tolist()
        shares += sorted_down[at].tolist() if alive else [None]
    return {"layer": names, "rank, as a share of units": ranks, "share of rows": shares}


@styled
def plot(frame: Frame) -> Figure:
    """A falling curve a layer."""
    drawing = figure(5.4, 4.2)
    axes = drawing.subplots()
    shown = {**frame, "rank": [100 * rank for rank in frame["rank, as a share of units"]]}
    draw(axes, shown, "rank", "share of rows")
    scale(axes, log_x=0, log_y=10)
    axes.set_xlim(0, 100)
    axes.set_xlabel("units, % of all in the layer, most frequent first")
    axes.set_ylabel("share of rows in which the unit is active")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
