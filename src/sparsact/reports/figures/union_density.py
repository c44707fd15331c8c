"""Union density: what several consecutive rows need together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sparsact.reports.figure import Frame, figure, styled
from sparsact.reports.layer_curves import draw, label, layers

if TYPE_CHECKING:
    from sparsact.inference import Measurement


def frame(measurement: Measurement) -> Frame:
    """A row for each layer and number of rows, as far as sequences are long enough."""
    found = [
        (label(block), rows, density)
        for block in layers(measurement)
        for rows, density in ((1, block.density), *block.unions.items())
        if density is not None
    ]
    names, rows, densities = zip(*found, strict=True)
    return {"layer": names, "consecutive rows": rows, "density of the union": densities}


@styled
def plot(frame: Frame) -> Figure:
    """A rising curve a layer."""
    drawing = figure(5.4, 4.2)
    axes = drawing.subplots()
    shown = {**frame, "density of the union": [100 * density for density in frame["density of the union"]]}
    draw(axes, shown, "consecutive rows", "density of the union", marker="o", ms=4)
    axes.set_xscale("log", base=4)
    ticks = sorted(set(frame["consecutive rows"]))
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("consecutive rows of a sequence")
    axes.set_ylabel("units active for any of them, %")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
