"""Figures of the one-dimensional example."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_b.one_dimension_claims import CONSTANTS, DENSE, LINES, of
from sparsact_papers.reports.curves import curves, joined, plot_curves

LINE, FOURFOLD = "best linear function", "fourfold per doubling"
NAMES = {CONSTANTS: "constants, closed form", LINES: "lines, closed form", DENSE: "dense ReLU, all units active"}


def _named(row: Row) -> str:
    return f"constants, RMSProp, {row['epochs']} epochs" if row["epochs"] else NAMES[row["model"]]


def _share(row: Row) -> float:
    return float(row["mse"] / row["variance"])


def frame(rows: Rows) -> Frame:
    """Median over seeds of the error as a share of the variance, a row a number of buckets or units."""
    found = (of(rows, CONSTANTS), of(rows, CONSTANTS, trained=True), of(rows, DENSE), of(rows, LINES))
    models = [curves(part, series=_named, x="n_units", y=_share, y_name="share") for part in found]
    line = curves(
        of(rows, DENSE),
        series=lambda _: LINE,
        x="n_units",
        y=lambda row: row["linear_mse"] / row["variance"],
        y_name="share",
    )
    return joined(*models, line, _fourfold(models[0]))


def _fourfold(means: Frame) -> Frame:
    """The line that falls fourfold from the first point on."""
    buckets = means["n_units"]
    ideal = [means["share"][0] * (buckets[0] / n) ** 2 for n in buckets]
    return means | {"series": [FOURFOLD] * len(ideal), "share": ideal, "low": ideal, "high": ideal}


def plot(frame: Frame) -> Figure:
    """Error against buckets on logarithmic axes, with the fourfold fall as a line."""
    drawing = plot_curves(
        frame,
        x_label="buckets, one active; or dense units, all active",
        y_label="mean squared error / variance",
        log_x=2,
        log_y=10,
        lines=(LINE, FOURFOLD),
        levels={"variance of the target": 1.0},
        size=(5.8, 5.0),
    )
    drawing.axes[0].xaxis.set_major_formatter("{x:g}")
    return drawing


CHARTS = (
    Chart(
        "error",
        "Error against buckets",
        "Points: median over seeds; bars: its interval. Each seed has its own target, points and shift.",
        frame,
        plot,
    ),
)
