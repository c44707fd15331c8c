"""Figures of a fit: held-out rows by degree, model, row and class; weight, influences and terms of a polynomial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from sparsact.reports.displays import VarianceDisplay
from sparsact.reports.figure import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PALE,
    PAPER_BLUES,
    VERMILION,
    Frame,
    chart,
    legend_above,
    list_axis,
    panel,
    panels,
    rows,
    scale,
    shortened,
    width_for,
)

if TYPE_CHECKING:
    from sparsact.fit.scored_table import ScoredTarget
    from sparsact.fit.scores import Confusion, CVCandidate, FoldScores, Gain, NoiseCeiling
    from sparsact.fit.target_result import TargetResult


def error_frame(candidates: Sequence[CVCandidate]) -> Frame:
    """Share of the variance left unexplained on held-out rows, one row a candidate; ``best`` marks each degree's."""
    candidates = [c for c in candidates if c.r2.known]
    degrees = {c.degree for c in candidates}
    best = {max((c for c in candidates if c.degree == degree), key=lambda c: c.r2.mean) for degree in degrees}
    return {
        "degree": [c.degree for c in candidates],
        "alpha": [c.alpha for c in candidates],
        "unexplained": [1 - c.r2.mean for c in candidates],
        "standard deviation": [c.r2.deviation for c in candidates],
        "best": [c in best for c in candidates],
    }


@chart(
    "error-by-degree",
    "Error of polynomials by degree",
    error_frame,
    "Polynomials of all products of encoded columns up to this degree, whichever model was chosen. Each fold was "
    "predicted by a polynomial learned from the others. Bars: ± one standard deviation.",
)
def error_chart(frame: Frame) -> Axes:
    """The best penalty of each degree with its spread; every other penalty in pale."""
    axes = panel(4.6, 3.4, x="degree", y="held-out error / variance (1 − R²)", grid="y")
    for alpha in sorted(set(frame["alpha"])):
        path = [(d, u) for d, a, u, _, _ in rows(frame) if a == alpha]
        axes.plot(*zip(*path, strict=True), color=PALE, lw=1, marker=".", ms=4, zorder=1)
    best = sorted(row for row in rows(frame) if row[4])
    degree, _, unexplained, deviation, _ = zip(*best, strict=True)
    axes.errorbar(degree, unexplained, yerr=deviation, color=BLUE, marker="o", capsize=4, lw=1.8, label="best penalty")
    if len(set(frame["alpha"])) > 1:
        axes.plot([], [], color=PALE, marker=".", label="other penalties")
    axes.axhline(1, color=GREY, lw=1, ls="--", label="mean (learns nothing)")
    if min(unexplained) < 0.2 and min(frame["unexplained"]) > 0:
        scale(axes, log_x=0, log_y=10)
    axes.set_ylim(top=1.5 * max(1.0, *unexplained) if axes.get_yscale() == "log" else 1.15 * max(1.0, *unexplained))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(min(degree) - 0.4, max(degree) + 0.4)
    legend_above(axes, ncols=1)
    return axes


LONGEST_NAME: Final = 36  # characters of a model in a line of the figure
CEILING, MEAN = "noise", "mean of the target"
LEAST_LEFT, MOST_LEFT = 1e-6, 10.0  # shares of the variance that are drawn as they are; beyond stand at the edge


def scores_frame(source: tuple[Mapping[str, FoldScores], NoiseCeiling | None]) -> Frame:
    """Mean, standard deviation and every fold of each model's R2; last the mean of the target and the noise ceiling."""
    models, ceiling = source
    more = {MEAN: 0.0} | ({} if ceiling is None else {CEILING: ceiling.r2.value})
    columns: Frame = {
        "model": [*models, *more],
        "mean R2": [*(spread.mean for spread in models.values()), *more.values()],
        "standard deviation": [*(spread.deviation for spread in models.values()), *(0.0 for _ in more)],
    }
    folds = zip(*(spread.folds for spread in models.values()), strict=True)
    return columns | {f"fold {i + 1}": [*values, *more.values()] for i, values in enumerate(folds)}


@chart(
    "scores",
    "Held-out error against the baselines",
    scores_frame,
    "Share of the variance that each model leaves unexplained, 1 − R², on a logarithmic axis; further left is better. "
    "Dots: folds; diamonds: their mean. The mean of the target leaves 1; the linear model uses each column alone.",
)
def scores_chart(frame: Frame) -> Axes:
    """One line a model, its name above it, so that narrow screens show both; lines for the mean and for noise."""
    scored = {name: mean for name, mean in zip(frame["model"], frame["mean R2"], strict=True) if name != MEAN}
    noise = scored.pop(CEILING, None)
    axes = panel(4.4, 1.1 + 0.52 * len(scored), x="error / variance, 1 − R² (held-out rows)", y="model", grid="x")
    folds = [values for name, values in frame.items() if name.startswith("fold ")]
    for place, (name, mean) in enumerate(scored.items()):
        colour = BLUE if place == 0 else GREY if name.startswith("boosted trees") else GREEN
        left = np.clip(1 - np.array([values[place] for values in folds]), LEAST_LEFT, MOST_LEFT)
        axes.scatter(left, [place] * len(left), s=22, color=colour, alpha=0.35, lw=0)
        axes.scatter(np.clip(1 - mean, LEAST_LEFT, MOST_LEFT), place, s=40, color=colour, marker="D", zorder=3)
        label = f"{shortened(name, LONGEST_NAME)}   R² {mean:.3f}"
        weight = "bold" if place == 0 else "normal"
        axes.text(0.0, place - 0.24, label, transform=axes.get_yaxis_transform(), color=colour, weight=weight)
    axes.axvline(1, color=GREY, lw=1, ls="--", zorder=0, label=f"{MEAN}, R² 0")
    if noise is not None:
        left = max(1 - noise, LEAST_LEFT)
        axes.axvline(left, color=VERMILION, lw=1.4, ls="--", zorder=0, label=f"{CEILING}, R² {noise:.3f}")
    axes.set(yticks=[], ylim=(len(scored) - 0.5, -0.75))
    axes.spines["left"].set_visible(False)
    scale(axes, log_x=10, log_y=0)
    legend_above(axes)
    return axes


FEW_ROWS: Final = 600  # below it each row is a dot


def residuals_frame(target: TargetResult | ScoredTarget) -> Frame:
    """Held-out rows; none where they were not predicted."""
    if target.predicted is None:
        return {"actual": [], "predicted": [], "residual": []}
    return {
        "actual": target.actual.tolist(),
        "predicted": target.predicted.tolist(),
        "residual": (target.actual - target.predicted).tolist(),
    }


@chart("residuals", "Predicted, actual and residual", residuals_frame, "")
def residuals_chart(frame: Frame) -> Axes:
    """Left: where each held-out row falls. Right: how residuals spread."""
    left, right = panels(9.2, 3.7, 1, 2, width_ratios=[1.1, 1])
    actual, predicted = np.array(frame["actual"]), np.array(frame["predicted"])
    _against(left, actual, predicted)
    residual = np.array(frame["residual"])
    right.hist(residual, bins="auto" if len(residual) < FEW_ROWS else 60, color=BLUE, alpha=0.85)
    right.axvline(0, color=GREY, lw=1)
    right.axvline(residual.mean(), color=VERMILION, lw=1.4, ls="--")
    right.set_title(f"mean {residual.mean():.2g} (dashed), standard deviation {residual.std():.3g}", fontsize=9)
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(5))  # numbers may be long
    right.set_xlabel("residual, actual − predicted")
    right.set_ylabel("held-out rows")
    return left


def _against(axes: Axes, actual: NDArray[np.float64], predicted: NDArray[np.float64]) -> None:
    if len(actual) < FEW_ROWS:
        axes.scatter(predicted, actual, s=14, color=BLUE, alpha=0.5, lw=0)
    else:
        blues = LinearSegmentedColormap.from_list("paper blues", PAPER_BLUES)
        cells = axes.hexbin(predicted, actual, gridsize=38, mincnt=1, cmap=blues, linewidths=0.2, norm="log")
        bar = axes.figure.colorbar(cells, ax=axes, pad=0.02, format="%g")
        bar.set_label("rows in cell")
    ends = [min(actual.min(), predicted.min()), max(actual.max(), predicted.max())]
    axes.plot(ends, ends, color=VERMILION, lw=1.2, ls="--", label="perfect")
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual (held-out rows)")
    axes.legend(loc="upper left", fontsize=8.5)


LONGEST_LYING: Final = 10  # characters of a name that stands beside its neighbours
SHOWN_COUNTS: Final = 20  # classes beyond which the cells are too small for numbers


def confusion_frame(confusion: Confusion) -> Frame:
    """One row an actual class, one column a predicted class, and the share of the row that is right."""
    counts = confusion.counts
    right = np.diag(counts) / np.maximum(counts.sum(axis=1), 1)
    predicted = {f"predicted {name}": counts[:, j].tolist() for j, name in enumerate(confusion.classes)}
    return {"actual": list(confusion.classes), **predicted, "share right": right.tolist()}


@chart(
    "confusion",
    "Confusion of held-out rows",
    confusion_frame,
    "Each row of the table was predicted by a model that had not seen it.",
)
def confusion_chart(frame: Frame) -> Axes:
    """Cells shaded by share of the actual class, with the counts."""
    classes = [str(name) for name in frame["actual"]]
    counts = np.array([frame[f"predicted {name}"] for name in classes]).T
    labels = [shortened(name) for name in classes]
    side, longest = 2.0 + min(0.46 * len(classes), 8.0), max(map(len, labels), default=0)
    upright = len(classes) >= 12 or longest > LONGEST_LYING
    room = 0.1 * max(0, longest - LONGEST_LYING)  # for long names, down the side and along the foot
    axes = panel(side + 0.8 + room, side + room, x="predicted class", y="actual class (held-out rows)")
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts) if len(classes) <= SHOWN_COUNTS else ():
        if count:
            axes.text(
                j, i, str(count), ha="center", va="center", color="white" if share[i, j] > 0.6 else INK, fontsize=9
            )
    axes.set_xticks(range(len(classes)), labels, rotation=90 if upright else 0)
    axes.set_yticks(range(len(classes)), labels)
    axes.figure.colorbar(picture, ax=axes, shrink=0.8, label="share of the actual class")
    return axes


class_scores_chart = replace(
    scores_chart,
    caption="Of the classes' indicators, on a logarithmic axis: further left is better. Dots: folds; diamonds: their "
    "mean. Predicting the frequencies of the classes leaves 1.",
)


# ---- of a polynomial ----


def weights_frame(target: TargetResult) -> Frame:
    """Sum of squared coefficients of each degree, itself and as a share of the target's variance."""
    shares = [weight / target.variance for weight in target.weights]
    return {
        "degree": list(range(1, len(target.weights) + 1)),
        "weight": list(target.weights),
        "share of variance": shares,
        "cumulative share": list(accumulate(shares)),
    }


@chart(
    "weights",
    "Weight by degree",
    weights_frame,
    "The rows are every combination of bits, equally often, so the parts add up to the variance.",
)
def weights_chart(frame: Frame) -> Axes:
    """A bar a degree, and the running sum."""
    axes = panel(4.6, 3.4, x="degree and its share", y="share of the target's variance", grid="y")
    VarianceDisplay(shares=frame["share of variance"]).plot(ax=axes)
    return axes


def shares_frame(target: TargetResult) -> Frame:
    """Posterior mean of the share of each degree, and its interval."""
    means, low, high = zip(*target.posterior_shares, strict=True)
    return {"degree": list(range(1, len(means) + 1)), "share": means, "low (95 %)": low, "high (95 %)": high}


@chart(
    "shares",
    "Variance by degree",
    shares_frame,
    "Posterior means and 95 % intervals, of the variance over all combinations of bits, equally often.",
)
def shares_chart(frame: Frame) -> Axes:
    """A bar and its interval for each degree, and the running sum."""
    axes = panel(4.6, 3.4, x="degree and its share", y="share of the variance", grid="y")
    VarianceDisplay(shares=frame["share"], low=frame["low (95 %)"], high=frame["high (95 %)"]).plot(ax=axes)
    return axes


def gains_frame(found: Sequence[Gain]) -> Frame:
    """R² added by each degree to the lower ones, with its 95 % interval."""
    return {
        "degree": [gain.degree for gain in found],
        "R² added": [gain.r2 for gain in found],
        "low (95 %)": [gain.low for gain in found],
        "high (95 %)": [gain.high for gain in found],
    }


@chart(
    "gains",
    "What each degree adds",
    gains_frame,
    "How much each degree of a polynomial raises the R² on held-out rows; bars are 95 % intervals. The squared "
    "coefficients would be shares of the variance if every combination of bits were equally frequent, which is not "
    "so in these rows.",
)
def gains_chart(frame: Frame) -> Axes:
    """A bar and its interval for each degree."""
    axes = panel(4.6, 3.4, x="degree and what it adds", y="held-out R² added", grid="y")
    degree, added = frame["degree"], frame["R² added"]
    reach = [high - value for high, value in zip(frame["high (95 %)"], added, strict=True)]
    axes.bar(degree, added, width=0.6, color=BLUE, yerr=reach, ecolor=GREY, capsize=4)
    axes.axhline(0, color=GREY, lw=1)
    axes.set_xticks(degree, [f"{d}\n{r2:.1%}" for d, r2 in zip(degree, added, strict=True)])
    axes.set_xlim(min(degree) - 0.6, max(degree) + 0.6)
    return axes


COLUMNS_SHOWN: Final = 30


def influences_frame(target: TargetResult) -> Frame:
    """Columns from the most influential down."""
    ranked = sorted(target.influences, key=lambda pair: -pair[1])
    return {
        "column": [name for name, _ in ranked],
        "influence": [influence for _, influence in ranked],
        "share of variance": [influence / target.variance for _, influence in ranked],
    }


@chart(
    "influences",
    "Influence of each column",
    influences_frame,
    "Mean square, over the rows, of all terms with this column, as a share of the target's variance. Shares of "
    "different columns overlap, and may cancel if columns vary together.",
)
def influences_chart(frame: Frame) -> Axes:
    """A bar a column."""
    return bars(frame["column"], frame["share of variance"], "influence, as a share of the target's variance")


def bars(names: Sequence[str], shares: Sequence[float], x: str) -> Axes:
    """A bar for each of the first names."""
    share, names = list(shares[:COLUMNS_SHOWN]), list(names[:COLUMNS_SHOWN])
    axes = panel(width_for(names), 0.9 + 0.25 * max(len(share), 2), x=x)
    drawn = axes.barh(range(len(share)), share, height=0.66, color=BLUE)
    axes.bar_label(drawn, fmt="%.3g", padding=4, fontsize=9)
    axes.margins(x=0.1)
    list_axis(axes, names)
    return axes
