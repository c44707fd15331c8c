"""Panels of curves side by side, with one scale."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from sparsact.reports.curves import draw_curves, scale
from sparsact.reports.frame import Frame
from sparsact.reports.style import figure, styled


def panelled(frames: Mapping[str, Frame]) -> Frame:
    """Frames of curves as one, with a first column that names the panel."""
    names = next(iter(frames.values()))
    return {
        "panel": [panel for panel, frame in frames.items() for _ in frame["series"]],
        **{name: [value for frame in frames.values() for value in frame[name]] for name in names},
    }


@styled
def plot_panels(frame: Frame, *, x_label: str, y_label: str, log_y: float = 0) -> Figure:
    """Draw a frame of :func:`panelled`."""
    names = list(dict.fromkeys(frame["panel"]))
    drawing = figure(1.2 + 2.4 * len(names), 4.0)
    panels = drawing.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, panel in zip(panels, names, strict=True):
        kept = [i for i, other in enumerate(frame["panel"]) if other == panel]
        part: Frame = {name: [column[i] for i in kept] for name, column in frame.items() if name != "panel"}
        draw_curves(axes, part, levels={})
        scale(axes, log_x=0, log_y=log_y)
        axes.set_title(panel)
        axes.set_xlabel(x_label)
    panels[0].set_ylabel(y_label)
    drawing.legend(*panels[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=4)
    return drawing
