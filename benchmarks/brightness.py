"""Brightness of a protein with 13 mutations: how well each kind of model predicts it, compared with tuned trees.

Target: a model that names its effects predicts as well as tuned boosted trees. ``--picture`` draws the README's figure.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as PltFigure
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import sparsact as sa
from benchmarks.figures import Figure
from benchmarks.program import option, program
from sparsact.fit.term import Term

BLUE, GREY, VERMILION = "#0072b2", "#6b7680", "#d55e00"
SHOWN: Final = 9
FOLDS: Final = KFold(5, shuffle=True, random_state=0)
TREES: Final = GridSearchCV(
    HistGradientBoostingRegressor(max_iter=300, early_stopping=False),
    {"learning_rate": [0.05, 0.2], "max_leaf_nodes": [6, 31], "min_samples_leaf": [5, 20]},
    cv=3,
)


WORK: Final = "brightness of eqFP611, five folds"
MODELS: Final[dict[str, Any]] = {
    "linear model": LinearRegression(),
    "with their pairs": sa.LowDegreeRegressor(degree=2),
    "combinations of up to four": sa.LowDegreeRegressor(degree=4, alpha=10.0),
    "all sizes, Gaussian process": sa.CubeGPRegressor(random_state=0),
    "network, one unit on at a time": sa.SparselyActivatedRegressor(n_restarts=0, random_state=0),
    "boosted trees, tuned": TREES,
}
LABELS: Final = ("mutations one by one", "sparsact", "sparsact", "sparsact", "sparsact", "no effects to read")


def draw(found: dict[str, np.ndarray], terms: tuple[Term, ...]) -> PltFigure:
    """Scores to the left, effects to the right."""
    plt.rcParams |= {f"axes.spines.{side}": False for side in ("top", "right")}
    plt.rcParams |= {"font.size": 11, "axes.titlelocation": "left"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1, 1.35], layout="constrained")
    medians = [np.median(values) for values in found.values()]
    labels = [f"{name}\n({label})" for name, label in zip(found, LABELS, strict=True)]
    bars = left.barh(labels, medians, color=[GREY, BLUE, BLUE, BLUE, BLUE, GREY], height=0.62)
    left.bar_label(bars, [f"{median:.0%}" for median in medians], padding=4)
    left.set(xlim=(0, 1.12), xticks=[], xlabel="held-out variance explained (R²)")
    left.set_title("Mutations act together …", fontsize=14)
    left.spines["bottom"].set_visible(False)
    left.invert_yaxis()
    for place, term in enumerate(sorted(terms, key=lambda term: -abs(term.effect))):
        colour = VERMILION if term.effect < 0 else BLUE
        right.barh(place, term.effect, color=colour, height=0.62)
        right.plot([term.effect_low, term.effect_high], [place, place], color="black", lw=1.5)
        right.annotate(f"{term.label}  ", (min(term.effect_low or 0.0, 0.0), place), ha="right", va="center")
    right.axvline(0, color=GREY, lw=1)
    right.set(yticks=[], xlabel="effect on brightness (line: 95 % interval)")
    right.set_xlim(left=min(term.effect for term in terms) - 0.45)
    right.set_title("… and these are the combinations that matter", fontsize=14)
    right.spines["left"].set_visible(False)
    right.invert_yaxis()
    return figure


@program(option("--picture", help="file of the picture to draw"), repeats=1, one_thread=False)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    landscape = sa.datasets.load_poelwijk()
    some = slice(None, None, 20 if arguments.quick else 1)
    found = {
        name: cross_val_score(model, landscape.X[some], landscape.y[some], cv=FOLDS) for name, model in MODELS.items()
    }
    figures = [Figure.of(WORK, f"{name}: R²", values.tolist(), "") for name, values in found.items()]
    behind = np.median(found["boosted trees, tuned"]) - np.median(found["all sizes, Gaussian process"])
    figures.append(Figure(WORK, "R² behind tuned trees", float(behind), "", most=0.005))
    if arguments.picture:
        result = sa.fit_table(landscape, "brightness", model="low-degree")
        draw(found, result.targets[0].terms[:SHOWN]).savefig(arguments.picture, dpi=150)
    return figures
