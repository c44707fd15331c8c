"""Draw the README's picture: what predicts the brightness of a protein, and which combinations of mutations matter.

Run it as ``python examples/brightness.py [FILE]``; it prints the numbers that it draws.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import sparsact as sa

BLUE, GREY, VERMILION = "#0072b2", "#6b7680", "#d55e00"
SHOWN = 9
FOLDS = KFold(5, shuffle=True, random_state=0)
TREES = GridSearchCV(
    HistGradientBoostingRegressor(max_iter=300, early_stopping=False),
    {"learning_rate": [0.05, 0.2], "max_leaf_nodes": [6, 31], "min_samples_leaf": [5, 20]},
    cv=3,
)


def scores(landscape: sa.datasets.Landscape, degree: int) -> dict[str, np.ndarray]:
    """Held-out R² of each model, by fold."""
    models = {
        "linear model": LinearRegression(),
        "sparsact, pairs": sa.LowDegreeRegressor(degree=2),
        f"sparsact, up to {degree} together": sa.LowDegreeRegressor(degree=degree, alpha=10.0),
        "boosted trees, tuned": TREES,
    }
    return {name: cross_val_score(model, landscape.X, landscape.y, cv=FOLDS) for name, model in models.items()}


def draw(found: dict[str, np.ndarray], terms: tuple[sa.fit.explain.Term, ...]) -> plt.Figure:
    """Scores to the left, effects to the right."""
    plt.rcParams |= {"font.size": 11, "axes.titlelocation": "left"}
    plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1, 1.35], layout="constrained")
    means = [values.mean() for values in found.values()]
    bars = left.barh(list(found), means, color=[GREY, BLUE, BLUE, GREY], height=0.62)
    left.bar_label(bars, [f"{mean:.2f}" for mean in means], padding=4)
    left.set(xlim=(0, 1.12), xticks=[0, 0.5, 1], title="How well is brightness predicted?", xlabel="held-out R²")
    left.invert_yaxis()
    for place, term in enumerate(terms):
        colour = VERMILION if term.effect < 0 else BLUE
        right.barh(place, term.effect, color=colour, height=0.62)
        right.plot([term.effect_low, term.effect_high], [place, place], color="black", lw=1.5)
    right.axvline(0, color=GREY, lw=1)
    right.set_yticks(range(len(terms)), [term.label for term in terms])
    right.set(title="Which mutations matter, and which together?", xlabel="effect on brightness (line: 95 % interval)")
    right.invert_yaxis()
    return figure


def main(path: str) -> None:
    """Fit, print, draw."""
    landscape = sa.datasets.load_poelwijk()
    result = sa.fit_table(landscape, "brightness")
    found = scores(landscape, result.choices.low_degree.degree)
    for name, values in found.items():
        print(f"{name:<26} held-out R² {values.mean():.3f} [{values.min():.3f} to {values.max():.3f}]")
    print(result)
    draw(found, result.targets[0].terms[:SHOWN]).savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/_static/brightness.png")
