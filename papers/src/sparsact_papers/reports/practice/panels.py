"""Panels of curves side by side, with one scale."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from sparsact.reports.figure import Frame, figure, scale, styled
from sparsact_papers.reports.curves import draw_curves

COLUMNS = 2


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
    lines = -(-len(names) // COLUMNS)
    drawing = figure(6.4, 0.8 + 2.9 * lines)
    panels = drawing.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(panels.flat, names, strict=False):
        kept = [i for i, other in enumerate(frame["panel"]) if other == panel]
        part: Frame = {name: [column[i] for i in kept] for name, column in frame.items() if name != "panel"}
        draw_curves(axes, part, levels={})
        axes.set_title(panel)
    for axes in panels.flat:  # which share their limits, known by now
        scale(axes, log_x=0, log_y=log_y)
    for axes in panels[-1]:
        axes.set_xlabel(x_label)
    for axes in panels[:, 0]:
        axes.set_ylabel(y_label)
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=4)
    return drawing
