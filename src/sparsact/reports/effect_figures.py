"""Figures of effects: the strongest with their intervals, and columns and pairs as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes

from sparsact.reports.displays import InteractionsDisplay, SpectrumDisplay
from sparsact.reports.figure import BLUE, GREY, VERMILION, Frame, chart, panel, rows, width_for

if TYPE_CHECKING:
    from sparsact.fit.target_result import TargetResult

TERMS_SHOWN: Final = 20


def interactions_frame(target: TargetResult) -> Frame:
    """Effects, the largest coefficients first."""
    terms = sorted(target.terms, key=lambda term: -abs(term.coefficient))
    return {
        "columns": [term.label for term in terms],
        "degree": [len(term.subset) for term in terms],
        "effect": [term.effect for term in terms],
        "low (95 %)": [term.effect_low for term in terms],
        "high (95 %)": [term.effect_high for term in terms],
        "q-value": [term.q_value for term in terms],
        "low (all at once)": [term.joint[0] for term in terms],
        "high (all at once)": [term.joint[1] for term in terms],
        "significant": [term.significant for term in terms],
        "coefficient": [term.coefficient for term in terms],
        "rows": [term.n_rows for term in terms],
        "same on these rows": [", ".join(term.aliases) for term in terms],
    }


@chart(
    "interactions",
    "Strongest effects",
    interactions_frame,
    "Effects in units of the target, largest share of the explained variance first. The number in brackets counts the "
    "rows in which all columns of the effect are on.",
)
def interactions_chart(frame: Frame) -> Axes:
    """A dot and its interval for each; blue raises the target, vermilion lowers it, grey is not significant."""
    shown = list(rows(frame))[:TERMS_SHOWN]
    names, _, effects, low, high, q_values, joint_low, joint_high, significant, _, n_rows, _ = zip(*shown, strict=True)
    labels = [f"{name} ({n:,})" if n is not None else name for name, n in zip(names, n_rows, strict=True)]
    if not any(q_value is not None for q_value in q_values):
        significant = (True,) * len(shown)  # as far as is known
    known = any(end is not None for end in low)
    axes = panel(width_for(labels), 0.9 + 0.27 * max(len(shown), 2), x="effect" + " (bar: 95 % interval)" * known)
    SpectrumDisplay(
        labels=labels,
        values=effects,
        low=low,
        high=high,
        joint_low=joint_low,
        joint_high=joint_high,
        significant=significant,
    ).plot(ax=axes)
    axes.plot([], [], "o", color=BLUE, label="raises the target")
    axes.plot([], [], "s", color=VERMILION, label="lowers the target")
    if not all(significant):
        axes.plot([], [], "d", color=GREY, label="not significant")
    axes.figure.legend(loc="outside upper right", ncols=3, fontsize=8.5)
    return axes


MOST_CELLS: Final = 40  # columns of a heat map


def pairs_frame(target: TargetResult) -> Frame:
    """Effects of single columns and of pairs, each once."""
    order = {name: place for place, (name, _) in enumerate(target.influences)}
    terms = [term for term in target.terms if len(term.subset) <= 2]
    terms.sort(key=lambda term: (len(term.subset), [order.get(name, 0) for name in term.subset]))
    return {
        "column": [term.subset[0] for term in terms],
        "with": [term.subset[-1] for term in terms],
        "effect": [term.effect for term in terms],
    }


@chart(
    "pairs",
    "Effects of columns and of pairs",
    pairs_frame,
    "Effects of single columns on the diagonal, of pairs beside it. Grey: not among the largest terms.",
)
def pairs_chart(frame: Frame) -> Axes:
    """A heat map of the columns that occur."""
    return pair_map(frame, "column", MOST_CELLS)


def pair_map(frame: Frame, label: str, most: int | None = None) -> Axes:
    """A heat map of rows (one, with another, value), of the first names; values that are not there are not known."""
    ones, others, _ = frame.values()
    names = list(dict.fromkeys([*ones, *others]))[:most]
    place = {name: i for i, name in enumerate(names)}
    values = np.full((len(names), len(names)), np.nan)
    for first, second, value in rows(frame):
        if first in place and second in place:
            values[place[first], place[second]] = values[place[second], place[first]] = value
    side = 2.6 + 0.26 * len(names)
    axes = panel(side + 0.8, side)
    InteractionsDisplay(values=values, feature_names=names).plot(ax=axes)
    axes.set(xlabel=label, ylabel=label)
    return axes
