"""Figures of low-degree least squares: error against samples, with noise, and with corrupted labels."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, GREY, Chart, Frame, figure, scale, styled
from sparsact.reports.figure import rows as rows_of
from sparsact_papers.experiments import Rows, median_of
from sparsact_papers.experiments.paper_a.low_degree_curves import ALIGNED, CLEAN, GAUSSIAN, OBLIVIOUS
from sparsact_papers.reports.curves import MARKERS, curves, joined, plot_curves

NOISY = "noise of a quarter of the variance"


def of_the_largest(rows: Rows) -> Rows:
    """The rows of the largest n, without corruption."""
    kept = Rows(row for row in rows if row["labels"] in (CLEAN, GAUSSIAN))
    return kept.where(n=max(kept.distinct("n"))) if len(kept) else kept


def error_frame(rows: Rows) -> Frame:
    """Median over seeds of error / variance and mean of the formula, a row a target, degree, labels and m / N."""
    found = of_the_largest(rows)
    table: dict[str, list[Any]] = {
        name: [] for name in ("target", "degree", "labels", "m / N", "error", "low", "high", "formula")
    }
    for key, group in found.groups("target", "degree", "labels", "ratio").items():
        over = median_of(group.array("error") / group.array("variance"))
        formula = float((group.array("predicted") / group.array("variance")).mean())
        for name, value in zip(table, (*key, over.estimate, over.low, over.high, formula), strict=True):
            table[name].append(value)
    return dict(table)


@styled
def plot_error(frame: Frame) -> Figure:
    """A panel a target: points measured, lines the formula."""
    targets = list(dict.fromkeys(frame["target"]))
    drawing = figure(3.6 * len(targets) + 0.6, 4.4)
    panels = drawing.subplots(1, len(targets), sharey=True, squeeze=False)[0]
    for axes, target in zip(panels, targets, strict=True):
        curves_of: dict[tuple[int, str], list[tuple[float, ...]]] = {}
        for name, degree, labels, *point in rows_of(frame):
            if name == target:
                curves_of.setdefault((degree, labels), []).append(tuple(point))
        for (degree, labels), curve in curves_of.items():
            x, y, low, high, formula = (list(column) for column in zip(*curve, strict=True))
            bars = [[max(a - b, 0) for a, b in zip(y, low, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
            noisy = labels == GAUSSIAN
            axes.plot(x, formula, color=GREY, lw=1.1, ls=(0, (5, 2)) if noisy else "-")
            axes.errorbar(
                x, y, bars, color=COLOURS[degree - 1], marker=MARKERS[degree - 1], ms=5.5, ls="", capsize=2.5,
                mfc="white" if noisy else None, label=f"degree {degree}" + (f", {NOISY}" if noisy else ""),
            )  # fmt: skip
        scale(axes, log_x=2, log_y=10)
        axes.set_title(target)
        axes.set_xlabel("samples m / monomials N")
        axes.grid(visible=True)
    panels[0].set_ylabel("squared error / variance")
    marks = {name: mark for axes in panels for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    drawing.legend(marks.values(), marks.keys(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


def ratio_frame(rows: Rows) -> Frame:
    """Mean over seeds of measured / predicted of the gated network, a row a curve and m / N."""
    kept = Rows(row for row in rows if row["labels"] == CLEAN and "gated" in row["target"] and row["degree"] >= 3)
    return curves(
        kept,
        series=lambda row: f"n = {row['n']}, degree {row['degree']}",
        x="ratio",
        y=lambda row: row["error"] / row["predicted"],
        y_name="measured / predicted",
    )


def plot_ratio(frame: Frame) -> Figure:
    """Ratios near 1: where the formula is right."""
    return plot_curves(
        frame,
        x_label="samples m / monomials N",
        y_label="measured error / tail (1 + N / (m - N))",
        log_x=2,
        log_y=10,
        levels={"10 % more": 1.1, "10 % less": 0.9},
    )


def corrupted_frame(rows: Rows) -> Frame:
    """Median over seeds of the risk beyond the noise, in units of the tail, a row a corruption and degree."""
    kept = Rows(row for row in rows if row["labels"] in (OBLIVIOUS, ALIGNED))
    least = curves(
        kept,
        series="labels",
        x="degree",
        y=lambda row: (row["least_risk"] - row["noise"]) / row["tail"],
        y_name="excess",
    )
    bound = curves(
        kept.where(labels=ALIGNED),
        series=lambda _: "triangle inequality",
        x="degree",
        y=lambda row: ((row["noise"] ** 0.5 + row["tail"] ** 0.5) ** 2 - row["noise"]) / row["tail"],
        y_name="excess",
    )
    return joined(least, bound)


def plot_corrupted(frame: Frame) -> Figure:
    """Excess risk against degree."""
    drawing = plot_curves(
        frame,
        x_label="degree of the polynomial",
        y_label="(least risk - noise) / tail",
        lines=("triangle inequality",),
        levels={"noise plus one tail": 1.0},
    )
    drawing.axes[0].set_xticks(sorted(set(frame["degree"])))
    return drawing


CHARTS = (
    Chart(
        "error",
        "Error against samples",
        "Largest n. Points: median over seeds and its interval, exact over the cube; hollow where labels are noisy. "
        "Lines: tail + (tail + v) N / (m - N), v the noise.",
        error_frame,
        plot_error,
    ),
    Chart(
        "formula",
        "Where the formula is right",
        "Gated network without noise: median over seeds and its interval. Where samples are no small part of the cube, "
        "repeated points make the least squares see fewer, and points already seen have less error.",
        ratio_frame,
        plot_ratio,
    ),
    Chart(
        "corruption",
        "Corrupted labels",
        "What the best polynomial of each degree adds to the noise. A tenth of the labels is moved by one standard "
        "deviation: at random, or to enlarge what lies above the degree. Median over seeds and its interval.",
        corrupted_frame,
        plot_corrupted,
    ),
)
