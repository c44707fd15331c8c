"""Figures of the average sensitivity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.reports.curves import curves, joined, plot_curves

LEMMA, OURS = "Lemma 9, constant 1", "4k²W²"
LABELS = {"n": "inputs n", "s": "units s", "k": "active units k"}


def frame(rows: Rows, varied: str) -> Frame:
    """Median over seeds of the sensitivity along one sweep, and both bounds."""
    sweep, copies = (rows.where(varied=varied, model=model) for model in ("sparse", "copies"))
    parts = [_curve(sweep, varied, "random networks", "sensitivity")]
    if copies:
        parts.append(_curve(copies, varied, "k copies of 2x₁", "sensitivity"))
    return joined(*parts, _curve(sweep, varied, OURS, "sharper"), _curve(sweep, varied, LEMMA, "lemma_9"))


def _curve(rows: Rows, varied: str, name: str, column: str) -> Frame:
    value: Callable[[Row], float] = lambda row: row[column]  # noqa: E731 - a name for the type
    return curves(rows, series=lambda _: name, x=varied, y=value, y_name="average sensitivity")


def plot(frame: Frame, varied: str) -> Figure:
    """Sensitivity against a size on logarithmic axes."""
    drawing = plot_curves(
        frame,
        x_label=LABELS[varied],
        y_label="average sensitivity, W = 1",
        log_x=0 if varied == "n" else 2,
        log_y=10,
        lines=(OURS, LEMMA),
    )
    sizes = sorted(set(frame[varied]))
    drawing.axes[0].set_xticks(sizes, [str(size) for size in sizes])
    return drawing


CHARTS = tuple(
    Chart(
        f"against-{varied}",
        f"Average sensitivity against {LABELS[varied]}",
        "Points: median over seeds; bars: its interval. Lines: the two bounds, at the median B. Copies of 2x₁ lie on "
        "the lower one.",
        partial(frame, varied=varied),
        partial(plot, varied=varied),
    )
    for varied in LABELS
)
