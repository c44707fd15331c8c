"""Figure of parity against the low-degree algorithm."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_a.parity_defeats import LIFTED
from sparsact_papers.reports.curves import curves, plot_curves


def frame(rows: Rows) -> Frame:
    """Median over seeds of error / variance for the largest S, a row a network and degree (in y, on the lift)."""
    largest = {name: max(row["size"] for row in rows if row["kind"] == name) for name in rows.distinct("kind")}
    return curves(
        Rows(_in_y(row) for row in rows if row["size"] == largest[row["kind"]]),
        series=lambda row: f"{row['kind']}, |S| = {row['size']}, s = {row['n_units']}",
        x="degree",
        y=lambda row: row["error"] / row["variance"],
        y_name="error / variance",
    )


def _in_y(row: Row) -> Row:
    """On the lift degree d reaches degree 2 d in y."""
    if row["kind"] != LIFTED:
        return row
    return replace(row, parameters={**row.parameters, "degree": 2 * row["degree"]})


def plot(frame: Frame) -> Figure:
    """Error as a share of the variance, against degree."""
    drawing = plot_curves(
        frame,
        x_label="degree of the polynomial (in y, on the lift)",
        y_label="squared error / variance",
        levels={"variance": 1.0},
    )
    drawing.axes[0].set_xticks(sorted(set(frame["degree"])))
    drawing.axes[0].set_ylim(bottom=-0.03)
    return drawing


CHARTS = (
    Chart(
        "degree",
        "Parity against the degree",
        "Median over seeds of the exact error of least squares from 4 samples a monomial, and its interval; s is the "
        "number of units. With m samples and N monomials an error of the variance grows to m / (m - N) times it.",
        frame,
        plot,
    ),
)
