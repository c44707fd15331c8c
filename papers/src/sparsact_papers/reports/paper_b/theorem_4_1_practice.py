"""Figures of Theorem 4.1 in practice: misses against samples, errors of the rivals against rows."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Rows
from sparsact_papers.experiments.paper_b.theorem_4_1_practice import AMBIENTS
from sparsact_papers.experiments.paper_b.theorem_4_1_practice_claims import RIVALS, finest
from sparsact_papers.reports.curves import curves, joined, plot_curves
from sparsact_papers.reports.paper_b.theorem_4_1 import by_width

PLUG_IN, UNBIASED = "sum of p(1 - p)^m, p estimated", "the same without bias"
COLUMNS = {"measured": "misses", PLUG_IN: "predicted", UNBIASED: "unbiased"}
DEVIATION, LINEAR = "standard deviation of the target", "best linear function"
NAMES = {
    "literal": "one table, constants",
    "nearest": "nearest neighbour",
    "eight_nearest": "8 nearest neighbours",
    "recommended": "LSHRegressor, defaults",
    "linear_rmse": LINEAR,
}


def misses_frame(rows: Rows) -> Frame:
    """Misses against samples, measured and predicted."""
    return by_width(finest(rows), {f"{name}, ": column for name, column in COLUMNS.items()}, "samples")


def misses_plot(frame: Frame) -> Figure:
    """The predictions as lines."""
    lines = [name for name in dict.fromkeys(frame["series"]) if name.startswith((PLUG_IN, UNBIASED))]
    return plot_curves(
        frame,
        x_label="samples",
        y_label="share of fresh points in empty buckets",
        log_x=2,
        log_y=10,
        lines=lines,
    )


def errors_frame(rows: Rows, ambient: int) -> Frame:
    """Errors as shares of the target's deviation."""
    found = rows.where(part=RIVALS, ambient=ambient)

    def share(column: str) -> Frame:
        return curves(
            found,
            series=lambda _: NAMES[column],
            x="rows",
            y=lambda row: row[column] / row["deviation"],
            y_name="share",
        )

    return joined(*(share(column) for column in NAMES))


def errors_plot(frame: Frame) -> Figure:
    """Error against rows."""
    drawing = plot_curves(
        frame,
        x_label="rows",
        y_label="rms error / standard deviation of the target",
        log_x=2,
        log_y=10,
        lines=(LINEAR,),
        levels={DEVIATION: 1.0},
    )
    drawing.axes[0].xaxis.set_major_formatter("{x:g}")
    return drawing


CHARTS = (
    Chart(
        "misses",
        "Misses against samples",
        "Median over seeds with its interval, on a plane (k = 2) in R^16. Lines: predictions from another sample.",
        misses_frame,
        misses_plot,
    ),
    *(
        Chart(
            f"errors-{d}",
            f"The literal learner and its rivals in R^{d}",
            "Median over seeds with its interval; 4-dimensional subspaces, lower envelope of 64 cones.",
            partial(errors_frame, ambient=d),
            errors_plot,
        )
        for d in AMBIENTS
    ),
)
