"""Figures of stacks: weight by degree, sensitivity against depth, learning curves."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Row, Rows, mean_of
from sparsact.reports.chart import Chart
from sparsact.reports.curves import curves, plot_curves
from sparsact.reports.frame import Frame

SHOWN = 2  # active units of the stacks whose spectra and curves are drawn


def _layers(row: Row) -> str:
    return "one layer" if row["n_layers"] == 1 else f"{row['n_layers']} layers"


def _unfolded(rows: Rows, x: str, values: str, start: int = 0) -> Rows:
    """A row for each entry of a list of values, at the entry of another list or at its place."""
    return Rows(
        Row(**(row.as_dict() | {"values": {"x": at, "y": value}}))
        for row in rows.where(k=SHOWN)
        for at, value in zip(row[x] if x else range(len(row[values])), row[values], strict=True)
        if at >= start
    )


def weights_frame(rows: Rows) -> Frame:
    """Share of the variance at every degree."""
    return curves(
        _unfolded(rows, "", "weights", start=1), series=_layers, x="x", y="y", y_name="weight", interval=mean_of
    )


def weights_plot(frame: Frame) -> Figure:
    """Weight against degree."""
    return plot_curves(frame, x_label="degree", y_label="share of the variance")


def sensitivity_frame(rows: Rows) -> Frame:
    """Average sensitivity at variance 1 for every depth and sparsity."""
    return curves(
        rows, series=lambda row: f"k = {row['k']} of {row['s']}", x="n_layers", y="sensitivity", interval=mean_of
    )


def sensitivity_plot(frame: Frame) -> Figure:
    """Sensitivity against depth."""
    return plot_curves(frame, x_label="layers", y_label="average sensitivity / variance")


def learning_frame(rows: Rows) -> Frame:
    """Error of low-degree least squares against samples."""
    return curves(_unfolded(rows, "samples", "errors"), series=_layers, x="x", y="y", y_name="error", interval=mean_of)


def learning_plot(frame: Frame) -> Figure:
    """Error against samples."""
    return plot_curves(
        frame,
        x_label="samples",
        y_label="mean squared error / variance",
        log_x=2,
        log_y=10,
        levels={"variance of the target": 1.0},
    )


CHARTS = (
    Chart(
        "weights",
        f"Weight by degree, k = {SHOWN}",
        "Mean over seeds with its 95 % interval. Every stack has variance 1.",
        weights_frame,
        weights_plot,
    ),
    Chart(
        "sensitivity",
        "Sensitivity against depth",
        "Mean over seeds with its 95 % interval; k units of a layer are on, in the mean.",
        sensitivity_frame,
        sensitivity_plot,
    ),
    Chart(
        "learning",
        f"Learning curves of degree 2, k = {SHOWN}",
        "Error over the whole cube; mean over seeds with its 95 % interval.",
        learning_frame,
        learning_plot,
    ),
)
