"""Figures of learning curves in the sparse and the dense class: error, its ratio, samples needed, the gap."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sparsact.bounds import sparse_complexity_bound
from sparsact.reports.figure import Chart, Frame, figure, scale, styled
from sparsact_papers.experiments import Row, Rows, mean_of, median_of
from sparsact_papers.experiments.paper_a.class_learners import DENSE, LEARNERS, SPARSE
from sparsact_papers.experiments.paper_a.erm_curves import FLOOR, NOISE, RANDOM, Cell
from sparsact_papers.experiments.paper_a.learning_targets import GATED
from sparsact_papers.experiments.paper_a.uniform_and_general import CORRELATED, ENOUGH, UNIFORM, samples_needed
from sparsact_papers.reports.curves import curves, draw_curves, joined, plot_curves

PANELS: dict[str, Cell] = {
    "4 units, k = 1": (RANDOM, 4, 1, 0.0, UNIFORM),
    "8 units, k = 1": (RANDOM, 8, 1, 0.0, UNIFORM),
    "16 units, k = 1": (RANDOM, 16, 1, 0.0, UNIFORM),
    "gated, 8 units, k = 1": (GATED, 8, 1, 0.0, UNIFORM),
    "4 units, k = 2": (RANDOM, 4, 2, 0.0, UNIFORM),
    "8 units, k = 2": (RANDOM, 8, 2, 0.0, UNIFORM),
    "8 units, k = 1, noise": (RANDOM, 8, 1, NOISE, UNIFORM),
    "8 units, k = 2, noise": (RANDOM, 8, 2, NOISE, UNIFORM),
    "8 units, k = 1, correlated signs": (RANDOM, 8, 1, 0.0, CORRELATED),
}
PLAIN = tuple(name for name, cell in PANELS.items() if cell[3:] == (0.0, UNIFORM))
MOST = 10.0  # errors above are drawn here
SHAPE = "shape of Theorem 19"


def _of(rows: Rows, cell: Cell) -> Rows:
    target, s, k, noise, distribution = cell
    found = rows.where(target=target, s=s, k=k, noise=noise, distribution=distribution)
    return Rows(row for name in LEARNERS for row in found.where(learner=name))


def errors(rows: Rows) -> Frame:
    """Median over seeds of error / variance, a row a network, learner and number of samples."""
    found: list[Frame] = []
    for name, cell in PANELS.items():
        y = partial(_share, "share")
        one = curves(_of(rows, cell), series="learner", x="m", y=y, y_name="error / variance")
        found.append({"network": [name] * len(one["m"])} | one)
    return joined(*found)


def _share(column: str, row: Row) -> float:
    return float(min(max(row[column], FLOOR), MOST))


@styled
def plot_errors(frame: Frame) -> Figure:
    """A panel a network."""
    drawing = figure(9.6, 8.4)
    panels = drawing.subplots(3, 3, sharex=True, sharey=True)
    for axes, name in zip(panels.flat, PANELS, strict=True):
        own = [i for i, each in enumerate(frame["network"]) if each == name]
        part: Frame = {column: [values[i] for i in own] for column, values in frame.items() if column != "network"}
        draw_curves(axes, part, levels={"a tenth of the variance": ENOUGH})
        scale(axes, log_x=2, log_y=10)
        axes.set_title(name, fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("samples m")
    for axes in panels[:, 0]:
        axes.set_ylabel("squared error / variance")
    drawing.legend(*panels.flat[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


def ratios(rows: Rows) -> Frame:
    """Sparse over dense error from the same points, a geometric mean over seeds: a row a network and m."""
    found: list[Frame] = []
    for name in PLAIN:
        own = _of(rows, PANELS[name])
        dense = {(row["m"], row["seed"]): row["share"] for row in own.where(learner=DENSE)}
        paired = Rows(row for row in own.where(learner=SPARSE) if (row["m"], row["seed"]) in dense)
        y = partial(_log_ratio, dense)
        one = curves(paired, series=partial(_named, name), x="m", y=y, y_name="ratio", interval=mean_of)
        found.append(one | {part: np.exp2(one[part]).tolist() for part in ("ratio", "low", "high")})
    return joined(*found)


def _named(name: str, _: Row) -> str:
    return name


def _log_ratio(dense: Mapping[tuple[int, int], float], row: Row) -> float:
    return float(np.log2(row["share"] / dense[row["m"], row["seed"]]))


def needs(rows: Rows) -> Frame:
    """Samples from which on the error is at most a tenth of the variance, against s, k = 1; from the same samples."""
    found: list[tuple[str, int, float, float, float, int]] = []
    for learner in (SPARSE, DENSE):
        for s in (4, 8, 16):
            own = _of(rows, (RANDOM, s, 1, 0.0, UNIFORM)).where(learner=learner)
            if own:
                need = median_of(samples_needed(own))
                found.append((learner, s, need.estimate, need.low, need.high, need.n))
    names = ("series", "s", "samples", "low", "high", "repetitions")
    return {name: [row[i] for row in found] for i, name in enumerate(names)}


def gaps(rows: Rows) -> Frame:
    """The gap from noisy labels, 8 units, k = 1; beside it the shape of its bound, through the first sparse mean."""
    noisy = _of(rows, PANELS["8 units, k = 1, noise"])
    frame = curves(noisy, series="learner", x="m", y=partial(_share, "gap"), y_name="gap / variance")
    if not noisy:
        return frame
    n, first = noisy[0]["n"], float(frame["gap / variance"][0])
    sizes = noisy.distinct("m")
    bound = [sparse_complexity_bound(n, 8, 1, 1.0, 1.0, np.sqrt(n), m) for m in sizes]
    shape = [first * each / bound[0] for each in bound]
    line: Frame = {"series": [SHAPE] * len(sizes), "m": sizes, "gap / variance": shape, "low": shape, "high": shape}
    return joined(frame, {**line, "repetitions": [0] * len(sizes)})


MEDIANS = "Medians over seeds and their intervals."
CHARTS = (
    Chart(
        "errors",
        "Error against samples: the sparse class, dense networks, polynomials",
        f"{MEDIANS} Exact, under the distribution of the points. Errors below a thousandth of the variance, or above "
        "ten times, are drawn at these limits.",
        errors,
        plot_errors,
    ),
    Chart(
        "ratios",
        "Error of the sparse learner over that of the dense one of as many units",
        "Geometric means over seeds with 95 % intervals; the same points for both, no noise. Errors below a thousandth "
        "of the variance count as this.",
        ratios,
        partial(
            plot_curves,
            x_label="samples m",
            y_label="sparse / dense squared error",
            log_x=2,
            log_y=10,
            levels={"equal errors": 1.0},
        ),
    ),
    Chart(
        "needs",
        "Samples needed against the number of units, one of them active",
        f"{MEDIANS} Samples from which on the error is at most a tenth of the variance; a network not learned from the "
        "most samples counts as twice these.",
        needs,
        partial(plot_curves, x_label="units s", y_label="samples needed", log_x=2, log_y=2),
    ),
    Chart(
        "gaps",
        "Error on new labels less that on the labels seen, with noise",
        f"{MEDIANS} Random networks of 8 units, k = 1, noise of a quarter of the variance. The line has the shape "
        "sqrt(log(m (R + B)) / m), drawn through the first value of the sparse learner. Gaps above ten times the "
        "variance are drawn at this limit.",
        gaps,
        partial(
            plot_curves, x_label="samples m", y_label="gap / variance of the target", log_x=2, log_y=10, lines=(SHAPE,)
        ),
    ),
)
