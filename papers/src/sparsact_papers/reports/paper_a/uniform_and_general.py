"""Figure of learners under four distributions: error against samples."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame, figure, scale, styled
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_a.uniform_and_general import DISTRIBUTIONS, ENOUGH
from sparsact_papers.reports.curves import curves, draw_curves, joined

LEAST, MOST = 1e-3, 30.0  # errors outside are drawn at these limits


def _share(row: Row) -> float:
    return float(min(max(row["error"] / row["variance"], LEAST), MOST))


def frame(rows: Rows) -> Frame:
    """Median over seeds of error / variance, a row a distribution, learner and number of samples."""
    found: list[Frame] = []
    for name in DISTRIBUTIONS:
        one = curves(rows.where(distribution=name), series="learner", x="m", y=_share, y_name="error / variance")
        found.append({"distribution": [name] * len(one["m"])} | one)
    return joined(*found)


@styled
def plot(frame: Frame) -> Figure:
    """A panel a distribution."""
    drawing = figure(8.2, 6.6)
    panels = drawing.subplots(2, 2, sharex=True, sharey=True)
    for axes, name in zip(panels.flat, DISTRIBUTIONS, strict=True):
        own = [i for i, each in enumerate(frame["distribution"]) if each == name]
        part: Frame = {column: [values[i] for i in own] for column, values in frame.items() if column != "distribution"}
        draw_curves(axes, part, levels={"a tenth of the variance": ENOUGH})
        scale(axes, log_x=2, log_y=10)
        axes.set_title(name)
    for axes in panels[-1]:
        axes.set_xlabel("samples m")
    for axes in panels[:, 0]:
        axes.set_ylabel("squared error / variance")
    drawing.legend(*panels.flat[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "samples",
        "Error against samples under four distributions",
        "Median over seeds and its interval; exact under the distribution that the points come from. Errors below a "
        "thousandth of the variance, or above thirty times, are drawn at these limits.",
        frame,
        plot,
    ),
)
