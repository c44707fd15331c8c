"""Figures of hidden parities: queries, examples and error against the number of bits."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame, figure, styled
from sparsact_papers.experiments import Row, Rows, mean_of
from sparsact_papers.experiments.paper_a.statistical_queries_claims import (
    ANY,
    CHANCE,
    ELIMINATION,
    JUNTAS,
    LIFTED,
    LOW,
    LOWER,
    MEMBERSHIP,
)
from sparsact_papers.reports.curves import curves, draw_curves, joined, plot_curves

BOUND = "lower bound"
KNOWN = (LOW, LOWER, JUNTAS, MEMBERSHIP, ELIMINATION, LIFTED)


def _of(rows: Rows, learners: tuple[str, ...]) -> Rows:
    return Rows(row for one in learners for row in rows.where(learner=one))


def _noise(row: Row) -> str:
    return f"{row['noise']:.0%} of the labels turned" if row["noise"] else "no noise"


def _used(row: Row) -> float:
    return float(row["examples"] or row["queries"])


def _what(row: Row) -> str:
    return f"{row['learner']} ({'examples' if row['examples'] else 'queries'})"


def any_frame(rows: Rows) -> Frame:
    """Queries for any parity, a row a learner and number of bits, with the bound."""
    found = _of(rows, ANY)
    bound = curves(found, series=lambda _: BOUND, x="m", y="bound", y_name="used")
    return joined(curves(found, series="learner", x="m", y="queries", y_name="used"), bound)


def known_frame(rows: Rows) -> Frame:
    """Examples, or queries where no example is seen, for parities of the greatest known size."""
    found = Rows(row for row in _largest(rows) if not row["noise"] and row["learner"] not in (LOWER, LIFTED))
    above = Rows(row for row in found.where(learner=LOW) if row["bound"] > 0)
    bound = curves(above, series=lambda _: BOUND, x="m", y="bound", y_name="used")
    return joined(curves(found, series=_what, x="m", y=_used, y_name="used"), bound)


def error_frame(rows: Rows) -> Frame:
    """Error for parities of the greatest known size, with and without noise, mean over seeds; a panel a learner."""
    found = _largest(rows)
    return joined(_panel("", Rows([])), *(_panel(one, found.where(learner=one)) for one in KNOWN))


def _panel(learner: str, rows: Rows) -> Frame:
    one = curves(rows, series=_noise, x="m", y="error", interval=mean_of)
    named: Frame = {"learner": [learner] * len(one["m"])}
    return named | one


def _largest(rows: Rows) -> Rows:
    found = _of(rows, KNOWN)
    return found.where(size=max(found.column("size"), default=0))


plot_any = partial(
    plot_curves, x_label="bits m", y_label="statistical queries", log_y=10, lines=(BOUND,), size=(5.4, 4.2)
)
plot_known = partial(
    plot_curves,
    x_label="bits m",
    y_label="queries, or examples, as the legend says",
    log_y=10,
    lines=(BOUND,),
    size=(5.8, 4.8),
)


@styled
def plot_error(frame: Frame) -> Figure:
    """Error against bits, a panel a learner, with chance as a line."""
    drawing = figure(8.4, 5.2)
    panels = drawing.subplots(2, 3, sharex=True, sharey=True)
    for axes, learner in zip(panels.flat, KNOWN, strict=True):
        own = [i for i, name in enumerate(frame["learner"]) if name == learner]
        part: Frame = {name: [values[i] for i in own] for name, values in frame.items() if name != "learner"}
        draw_curves(axes, part, levels={"guessing": CHANCE})
        axes.set_ylim(-0.05, 0.6)
        axes.set_title(learner)
    for axes in panels[1]:
        axes.set_xlabel("bits m")
    for row in panels:
        row[0].set_ylabel("share of wrong signs")
    last = panels.flat[KNOWN.index(ELIMINATION)]
    drawing.legend(*last.get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "any-parity",
        "Statistical queries for any parity, against bits",
        "Answers come from the adversary of the lower bound. Points: median over seeds; bars: its interval. "
        "The bound is tau^2 (2^m - 9) with tau = 0.124.",
        any_frame,
        plot_any,
    ),
    Chart(
        "known-size",
        "Queries or examples for parities of known size, against bits",
        "The greatest size of S that was run. Correlations of one sample are as many as the queries of low degree; "
        "elimination on the lift wants as many examples as on the bits. The bound, tau^2 (binomial(m, |S|) - 9), is on "
        "statistical queries alone. Points: median over seeds; bars: its interval.",
        known_frame,
        plot_known,
    ),
    Chart(
        "error",
        "Error against bits",
        "Share of wrong signs at 4000 fresh points without noise, mean over seeds with its 95 % interval; 1/2 where a "
        "learner has no hypothesis. The greatest size of S that was run.",
        error_frame,
        plot_error,
    ),
)
