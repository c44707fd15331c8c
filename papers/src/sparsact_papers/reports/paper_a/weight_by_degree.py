"""Figure of the weight by degree."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.reports.curves import curves, plot_curves

LEAST_SHARE = 1e-8  # below it a share is rounding


def frame(rows: Rows) -> Frame:
    """Median over seeds of the share of the variance above each degree, at the largest n."""
    largest = Rows(row for row in rows if row["n"] == max(rows.distinct("n")))
    return curves(Rows(_above(largest)), series=_name, x="degree", y="share")


def _above(rows: Iterable[Row]) -> Iterable[Row]:
    for row in rows:
        shares = enumerate(row["tail_share"])
        yield from (row.with_values(degree=d, share=share) for d, share in shares if share > LEAST_SHARE)


def _name(row: Row) -> str:
    return f"{row['k']}-sparse" if row["model"] == "sparse" else str(row["model"])


def plot(frame: Frame) -> Figure:
    """Share above a degree against the degree."""
    return plot_curves(frame, x_label="degree d", y_label="weight above degree d / variance", log_y=10)


CHARTS = (
    Chart(
        "tail",
        "Weight above a degree",
        "Points: median over seeds at the largest n; bars: its interval. Shares below 1e-8 are left out.",
        frame,
        plot,
    ),
)
