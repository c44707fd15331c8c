"""Draw the card of 1280 x 640 pixels that a code host shows next to links: ``python examples/card.py [FILE]``."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa

INK, BLUE, GREY = "#1b2733", "#0072b2", "#6b7680"
SHOWN = 7


def draw(terms: tuple[sa.fit.explain.Term, ...]) -> plt.Figure:
    """The name and one sentence to the left, the sizes of the strongest terms to the right: combinations in blue."""
    figure = plt.figure(figsize=(12.8, 6.4))
    figure.text(0.06, 0.72, "sparsact", fontsize=64, weight="bold", color=INK)
    sentence = "Which combinations of\nyes/no features drive\na measured value?"
    figure.text(0.063, 0.35, sentence, fontsize=30, color=INK, linespacing=1.4)
    figure.text(0.063, 0.12, "exact effects with intervals, in seconds", fontsize=20, color=GREY)
    axes = figure.add_axes((0.64, 0.2, 0.32, 0.62))
    for place, term in enumerate(terms):
        axes.barh(place, abs(term.coefficient), color=BLUE if len(term.subset) > 1 else GREY, height=0.65)
        axes.plot(np.abs([term.low, term.high]), [place, place], color=INK, lw=2.5)
    axes.set_yticks(range(len(terms)), [term.label for term in terms], fontsize=17, color=INK)
    axes.set_xticks([])
    axes.set_title("what drives the brightness of a protein", fontsize=17, color=INK, loc="right")
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure


def main(path: str) -> None:
    """Fit, and draw the strongest terms."""
    result = sa.fit_table(sa.datasets.load_poelwijk(), "brightness", degree=3, alpha=1.0)
    draw(result.targets[0].terms[:SHOWN]).savefig(path, dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/_static/card.png")
