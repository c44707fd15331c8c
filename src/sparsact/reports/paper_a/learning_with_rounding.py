"""Figure of learning with rounding."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Row, Rows, mean_of
from sparsact.reports.chart import Chart
from sparsact.reports.curves import curves, plot_curves
from sparsact.reports.frame import Frame


def _learner(row: Row) -> str:
    return str(row["learner"]) + (", printed rule" if row["rule"] == "modulo" else "")


def frame(rows: Rows) -> Frame:
    """Mean skill of every learner by either rule, for each length of the vectors."""
    return curves(rows, series=_learner, x="m", y="skill", interval=mean_of)


def plot(frame: Frame) -> Figure:
    """Skill against length, a line a learner."""
    return plot_curves(
        frame,
        x_label="entries of a vector, m",
        y_label="1 - squared error / that of the trivial predictor",
        log_x=2,
        levels={"the mean of the labels (trivial)": 0.0},
        size=(6.4, 5.2),
    )


CHARTS = (
    Chart(
        "skill",
        "Who predicts fresh labels of learning with rounding",
        "Points: mean over seeds; bars: its 95 % interval. 1 is perfect, 0 no better than the mean of the labels.",
        frame,
        plot,
    ),
)
