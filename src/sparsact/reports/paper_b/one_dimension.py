"""Figures of the one-dimensional example."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Rows
from sparsact.reports.chart import Chart
from sparsact.reports.curves import curves, joined, plot_curves
from sparsact.reports.frame import Frame

LINE, FOURFOLD = "best linear function", "fourfold per doubling"


def frame(rows: Rows) -> Frame:
    """Median over seeds of the error as a share of the variance, a row a number of buckets."""
    means = curves(
        rows, series=lambda _: "bucket means", x="n_buckets", y=lambda row: row["mse"] / row["variance"], y_name="share"
    )
    line = curves(
        rows, series=lambda _: LINE, x="n_buckets", y=lambda row: row["linear_mse"] / row["variance"], y_name="share"
    )
    first, buckets = means["share"][0], means["n_buckets"]
    ideal = [first * (buckets[0] / n) ** 2 for n in buckets]
    fourfold = line | {"series": [FOURFOLD] * len(ideal), "share": ideal, "low": ideal, "high": ideal}
    return joined(means, line, fourfold)


def plot(frame: Frame) -> Figure:
    """Error against buckets on logarithmic axes, with the fourfold fall as a line."""
    return plot_curves(
        frame,
        x_label="buckets",
        y_label="mean squared error / variance",
        log_x=2,
        log_y=10,
        lines=(LINE, FOURFOLD),
        levels={"variance of the target": 1.0},
    )


CHARTS = (
    Chart(
        "error",
        "Error against buckets",
        "Points: median over seeds; bars: its interval. Each seed has its own target, points and shift.",
        frame,
        plot,
    ),
)
