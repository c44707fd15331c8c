"""Figures of units and sparsity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.reports.curves import curves, joined, plot_curves

LABELS = {"s": "units s, at fixed k", "k": "active units k, at fixed s"}
COLUMNS = {
    "average sensitivity, W = 1": "sensitivity",
    "tail above degree 2 / variance": "tail_share",
    "error of degree 2 / variance": "error_share",
}


def frame(rows: Rows, varied: str) -> Frame:
    """Median over seeds of sensitivity, tail and error along one sweep."""
    sweep = rows.where(varied=varied)
    return joined(*(_curve(sweep, varied, name, column) for name, column in COLUMNS.items()))


def _curve(rows: Rows, varied: str, name: str, column: str) -> Frame:
    value: Callable[[Row], float] = lambda row: row[column]  # noqa: E731 - a name for the type
    return curves(rows, series=lambda _: name, x=varied, y=value, y_name="value")


def plot(frame: Frame, varied: str) -> Figure:
    """The three against a size on logarithmic axes."""
    drawing = plot_curves(
        frame, x_label=LABELS[varied], y_label="sensitivity, or share of the variance", log_x=2, log_y=10
    )
    sizes = sorted(set(frame[varied]))
    drawing.axes[0].set_xticks(sizes, [str(size) for size in sizes])
    return drawing


CHARTS = tuple(
    Chart(
        f"against-{varied}",
        f"Sensitivity, tail and error against {label}",
        "Points: median over seeds; bars: its interval.",
        partial(frame, varied=varied),
        partial(plot, varied=varied),
    )
    for varied, label in LABELS.items()
)
