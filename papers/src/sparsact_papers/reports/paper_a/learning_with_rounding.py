"""Figures of learning with rounding."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Rows, mean_of, median_of
from sparsact_papers.reports.curves import curves, plot_curves


def skills(rows: Rows) -> Frame:
    """Mean skill of every learner and attack modulo a prime, for each length of the vectors."""
    return curves(rows.where(p=2), series="learner", x="m", y="skill", interval=mean_of)


def plot_skills(frame: Frame) -> Figure:
    """Skill against length, a line for each learner."""
    return plot_curves(
        frame,
        x_label="entries of a vector, m",
        y_label="1 - squared error / that of the trivial predictor",
        log_x=2,
        levels={"the mean of the labels (trivial)": 0.0},
        size=(6.4, 5.2),
    )


def operations(rows: Rows) -> Frame:
    """Median operations of every attack, for each length of the vectors."""
    attacks = Rows(row for row in rows if "operations" in row.values)
    return curves(attacks, series="learner", x="m", y="operations", interval=median_of)


def plot_operations(frame: Frame) -> Figure:
    """Operations against length, a line for each attack."""
    return plot_curves(frame, x_label="entries of a vector, m", y_label="operations", log_y=10)


CHARTS = (
    Chart(
        "skill",
        "Who predicts fresh labels of learning with rounding",
        "Points: mean over seeds; bars: its 95 % interval. 1 is perfect, 0 no better than the mean of the labels. An "
        "attack beyond its budget predicts the mean.",
        skills,
        plot_skills,
    ),
    Chart(
        "operations",
        "Operations of each attack",
        "Points: median over seeds, modulo the smallest prime q of at least 2 m + 1. Beyond their budget all secrets "
        "would take m q^m, and linearisation N^3 for N unknowns. Lattice reduction: also where it failed.",
        operations,
        plot_operations,
    ),
)
