"""Figures of the degree that is enough."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_a.sufficient_degree import SPARSITIES, TENTH
from sparsact_papers.reports.curves import curves, joined, plot_curves

SHARE = "epsilon / variance"
OURS, THEOREM, MOST = "4k²W²/ε, k = 1", "Theorem 8, k = 1, constant 1", "n"


def frame_of_bounds(rows: Rows) -> Frame:
    """Median over seeds of the degree at every epsilon, at the largest n, and both bounds for k = 1."""
    largest = rows.where(model="sparse", n=max(rows.distinct("n")))
    points = Rows(_points(largest))
    one = points.where(k=1)
    return joined(
        curves(points, series=lambda row: f"measured, k = {row['k']}", x=SHARE, y="at_measured", y_name="degree"),
        curves(one, series=lambda _: OURS, x=SHARE, y="at_sharper", y_name="degree"),
        curves(one, series=lambda _: THEOREM, x=SHARE, y="at_theorem_8", y_name="degree"),
        curves(one, series=lambda _: MOST, x=SHARE, y="n", y_name="degree"),
    )


def _points(rows: Rows) -> Iterator[Row]:
    for row in rows:
        for i, share in enumerate(row["share"]):
            found = {f"at_{name}": row[name][i] for name in ("measured", "sharper", "theorem_8")}
            yield row.with_values(**{SHARE: share}, **found)


def plot_bounds(frame: Frame) -> Figure:
    """Degree against epsilon, both logarithmic."""
    return plot_curves(
        frame,
        x_label="squared error ε / variance",
        y_label="degree that is enough",
        log_x=10,
        log_y=10,
        lines=(OURS, THEOREM, MOST),
    )


def frame_of_inputs(rows: Rows) -> Frame:
    """Median over seeds of the measured degree at a tenth of the variance, against n."""
    sparse = Rows(row for k in SPARSITIES for row in rows.where(model="sparse", k=k))
    measured = curves(
        sparse, series=lambda row: f"k = {row['k']}", x="n", y=lambda row: row["measured"][TENTH], y_name="degree"
    )
    return joined(measured, curves(sparse.where(k=1), series=lambda _: MOST, x="n", y="n", y_name="degree"))


def plot_inputs(frame: Frame) -> Figure:
    """Measured degree against n."""
    drawing = plot_curves(frame, x_label="inputs n", y_label="degree for ε = variance / 10", lines=(MOST,))
    drawing.axes[0].set_ylim(bottom=0)
    drawing.axes[0].set_xticks(sorted(set(frame["n"])))
    return drawing


CHARTS = (
    Chart(
        "bounds",
        "Measured degree and bounds",
        "Points: median over seeds at the largest n; bars: its interval. Above n no bound says anything.",
        frame_of_bounds,
        plot_bounds,
    ),
    Chart(
        "against-n",
        "Measured degree against the inputs",
        "Points: median over seeds; bars: its interval.",
        frame_of_inputs,
        plot_inputs,
    ),
)
