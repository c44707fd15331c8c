"""Figures of stacks of sparsely activated layers."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.reports.curves import curves, plot_curves

NAMES = {1: "one layer", 2: "two layers", 3: "three layers"}
LEAST_SHARE = 1e-8  # below it a share is rounding


def frame_of_tails(rows: Rows) -> Frame:
    """Median over seeds of the share of the variance above each degree, at the largest k."""
    return curves(Rows(_above(_at_largest_k(rows))), series=_layers, x="degree", y="share")


def frame_of_sensitivity(rows: Rows) -> Frame:
    """Median over seeds of the sensitivity as a share of the variance, against the number of layers."""
    by_k = Rows(row for k in rows.distinct("k") for row in rows.where(k=k))
    return curves(by_k, series=lambda row: f"k = {row['k']}", x="depth", y="sensitivity_share")


def frame_of_learning(rows: Rows) -> Frame:
    """Median over seeds of the learner's error against its points, at the largest k."""
    return curves(Rows(_learned(_at_largest_k(rows))), series=_layers, x="points", y="share")


def _at_largest_k(rows: Rows) -> Rows:
    return rows.where(k=max(rows.distinct("k")))


def _layers(row: Row) -> str:
    return NAMES[row["depth"]]


def _above(rows: Rows) -> Iterator[Row]:
    for row in rows:
        shares = enumerate(row["tail_share"])
        yield from (row.with_values(degree=d, share=share) for d, share in shares if share > LEAST_SHARE)


def _learned(rows: Rows) -> Iterator[Row]:
    for row in rows:
        curve = zip(row["n_points"], row["error_share"], strict=True)
        yield from (row.with_values(points=m, share=share) for m, share in curve)


def plot_tails(frame: Frame) -> Figure:
    """Share above a degree against the degree."""
    return plot_curves(frame, x_label="degree d", y_label="weight above degree d / variance", log_y=10)


def plot_sensitivity(frame: Frame) -> Figure:
    """Sensitivity against the number of layers."""
    drawing = plot_curves(frame, x_label="layers", y_label="average sensitivity / variance")
    drawing.axes[0].set_ylim(bottom=0)
    drawing.axes[0].set_xticks(sorted(set(frame["depth"])))
    return drawing


def plot_learning(frame: Frame) -> Figure:
    """Error against points."""
    drawing = plot_curves(
        frame,
        x_label="training points",
        y_label="error of degree 2 / variance",
        log_x=2,
        levels={"variance of the target": 1.0},
    )
    drawing.axes[0].set_ylim(bottom=0)
    return drawing


CHARTS = (
    Chart(
        "tail",
        "Weight above a degree, by depth",
        "Points: median over seeds at the largest k; bars: its interval. Shares below 1e-8 are left out.",
        frame_of_tails,
        plot_tails,
    ),
    Chart(
        "sensitivity",
        "Average sensitivity and depth",
        "Points: median over seeds; bars: its interval. The seed's stacks share their lower layers.",
        frame_of_sensitivity,
        plot_sensitivity,
    ),
    Chart(
        "learning",
        "Learning curves by depth",
        "Points: median over seeds at the largest k; bars: its interval. The error is over the whole cube.",
        frame_of_learning,
        plot_learning,
    ),
)
