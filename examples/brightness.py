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
        "mutations one by one\n(linear model)": LinearRegression(),
        "with their pairs\n(sparsact)": sa.LowDegreeRegressor(degree=2),
        f"combinations of up to {degree}\n(sparsact)": sa.LowDegreeRegressor(degree=degree, alpha=10.0),
        "all sizes, Gaussian process\n(sparsact)": sa.CubeGPRegressor(random_state=0),
        "network, one unit on at a time\n(sparsact)": sa.SparselyActivatedRegressor(n_restarts=0, random_state=0),
        "boosted trees, tuned\n(no effects to read)": TREES,
    }
    return {name: cross_val_score(model, landscape.X, landscape.y, cv=FOLDS) for name, model in models.items()}


def draw(found: dict[str, np.ndarray], terms: tuple[sa.fit.explain.Term, ...]) -> plt.Figure:
    """Scores to the left, effects to the right."""
    plt.rcParams |= {f"axes.spines.{side}": False for side in ("top", "right")}
    plt.rcParams |= {"font.size": 11, "axes.titlelocation": "left"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1, 1.35], layout="constrained")
    means = [values.mean() for values in found.values()]
    bars = left.barh(list(found), means, color=[GREY, BLUE, BLUE, BLUE, BLUE, GREY], height=0.62)
    left.bar_label(bars, [f"{mean:.0%}" for mean in means], padding=4)
    left.set(xlim=(0, 1.12), xticks=[], xlabel="held-out variance explained (R²)")
    left.set_title("Mutations act together …", fontsize=14)
    left.spines["bottom"].set_visible(False)
    left.invert_yaxis()
    for place, term in enumerate(sorted(terms, key=lambda term: -abs(term.effect))):
        colour = VERMILION if term.effect < 0 else BLUE
        right.barh(place, term.effect, color=colour, height=0.62)
        right.plot([term.effect_low, term.effect_high], [place, place], color="black", lw=1.5)
        right.annotate(f"{term.label}  ", (min(term.effect_low, 0), place), ha="right", va="center")
    right.axvline(0, color=GREY, lw=1)
    right.set(yticks=[], xlabel="effect on brightness (line: 95 % interval)")
    right.set_xlim(left=min(term.effect for term in terms) - 0.45)
    right.set_title("… and these are the combinations that matter", fontsize=14)
    right.spines["left"].set_visible(False)
    right.invert_yaxis()
    return figure


def main(path: str) -> None:
    """Fit, print, draw."""
    landscape = sa.datasets.load_poelwijk()
    result = sa.fit_table(landscape, "brightness", model="low-degree")
    found = scores(landscape, result.choices.low_degree.degree)
    for name, values in found.items():
        spread = f"{values.mean():.3f} [{values.min():.3f} to {values.max():.3f}]"
        print(f"{' '.join(name.split()):<40} held-out R² {spread}")
    print(result)
    draw(found, result.targets[0].terms[:SHOWN]).savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/_static/brightness.png")
