"""Figure of learning with rounding."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sparsact.experiments import Rows, mean_of
from sparsact.reports.chart import Chart
from sparsact.reports.frame import Frame
from sparsact.reports.frame import rows as rows_of
from sparsact.reports.style import BLUE, INK, figure, styled


def frame(rows: Rows) -> Frame:
    """Mean skill of every learner by either rule."""
    skills = [
        (f"{name}, {rule}", mean_of(g.column("skill"))) for (rule, name), g in rows.groups("rule", "learner").items()
    ]
    return {
        "learner": [name for name, _ in skills],
        "skill": [one.estimate for _, one in skills],
        "low": [one.low for _, one in skills],
        "high": [one.high for _, one in skills],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A mark and a bar for each learner."""
    drawing = figure(6.0, 4.2)
    axes = drawing.subplots()
    for at, (_, skill, low, high) in enumerate(rows_of(frame)):
        bars = np.nan_to_num([[skill - low], [high - skill]], posinf=0.0)
        axes.errorbar([skill], [at], xerr=np.clip(bars, 0, None), fmt="o", color=BLUE, capsize=2.5)
    axes.set_yticks(range(len(frame["learner"])), frame["learner"])
    axes.axvline(0, color=INK, lw=0.9, label="the mean of the labels (trivial)")
    axes.set_xlabel("1 - squared error / that of the trivial predictor")
    drawing.legend(fontsize=8.5, loc="outside upper center")
    return drawing


CHARTS = (
    Chart(
        "skill",
        "Who predicts fresh labels of learning with rounding",
        "Points: mean over seeds; bars: its 95 % interval. 1 is perfect, 0 no better than the mean of the labels. "
        "Each learner is named with the rule of the labels.",
        frame,
        plot,
    ),
)
