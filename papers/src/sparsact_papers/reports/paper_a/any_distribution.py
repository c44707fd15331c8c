"""Figure of Theorem 17: error on points not seen against samples."""

from __future__ import annotations

from functools import partial

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_a.any_distribution import DISTRIBUTIONS
from sparsact_papers.experiments.paper_a.uniform_and_general import ENOUGH
from sparsact_papers.reports.curves import curves, plot_curves


def frame(rows: Rows, distribution: str) -> Frame:
    """Median over seeds of error / variance, a row for each n and number of samples."""
    found = rows.where(distribution=distribution)
    return curves(found, series=_name, x="m", y="share", y_name="error / variance")


def _name(row: Row) -> str:
    return f"n = {row['n']}"


CHARTS = tuple(
    Chart(
        name.replace(" ", "-"),
        f"Error on points not seen: {name}",
        "Median over seeds and its interval; labels have noise of a quarter of the variance, errors are against the "
        "function.",
        partial(frame, distribution=name),
        partial(
            plot_curves,
            x_label="samples m",
            y_label="squared error / variance",
            log_x=2,
            log_y=10,
            levels={"a tenth of the variance": ENOUGH},
        ),
    )
    for name in DISTRIBUTIONS
)
