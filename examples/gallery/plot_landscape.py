"""
A protein landscape
===================

**The job.** Thirteen sites of a protein may each be mutated or not, and a few hundred of the 8,192
variants have been measured. Which sites matter, which pairs of sites act together, how sure is
that, and how bright are the others?

The complete landscape between two fluorescent proteins has been measured [1]_, and the package
holds it.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa
from sparsact.datasets import load_poelwijk

rng = np.random.default_rng(0)
landscape = load_poelwijk()
X, y, names = landscape.X, landscape.y, landscape.names
print(landscape.source)

order = rng.permutation(len(X))
seen, unseen = order[:600], order[600:]
print(f"{len(seen)} variants to learn from, {len(unseen):,} to predict")

# %%
# How high a degree?
# ------------------
#
# A polynomial of degree 1 adds up sites, one of degree 2 adds pairs, and so on.
# :class:`~sparsact.LowDegreeRegressorCV` compares degrees on rows that it leaves out, and reads the
# table once for all of them.

model = sa.LowDegreeRegressorCV(degrees=(1, 2, 3)).fit(X[seen], y[seen])
print(
    f"degree {model.degree_}, ridge penalty {model.alpha_:g}: held-out R² {model.best_score_:.3f}"
)
print(f"R² on {len(unseen):,} unseen variants: {model.score(X[unseen], y[unseen]):.3f}")

# %%
# Predicted against measured brightness. Points on the grey line would be exact.

fig, ax = plt.subplots(figsize=(5.2, 4.4))
image = ax.hexbin(
    y[unseen], model.predict(X[unseen]), gridsize=45, mincnt=1, bins="log", cmap="cividis"
)
ends = [y.min(), y.max()]
ax.plot(ends, ends, color="0.5", lw=1, ls="--", label="exact")
ax.set(
    xlabel="brightness, measured",
    ylabel="brightness, predicted",
    title=f"{len(unseen):,} unseen variants",
)
ax.legend()
fig.colorbar(image, label="variants in a cell")
plt.show()

# %%
# Which sites, and which pairs?
# -----------------------------
#
# The effect of one site is the change by its mutation; of two, how much one changes the other's,
# averaged over all settings of the others. The model takes sites as signs, +1 as it was and -1
# mutated, so the effect of k sites is :math:`(-2)^k` times their coefficient.

plain = sa.LowDegreeRegressor(degree=2).fit(X[seen], y[seen])
strongest = [subset for subset, _ in plain.spectrum_.top(16, min_degree=1)]
factor = np.array([(-2.0) ** len(subset) for subset in strongest])
low, high = np.sort(plain.confidence_intervals(strongest) * factor[:, None]).T
value = factor * np.array([plain.spectrum_.coefficient(subset) for subset in strongest])

fig, ax = plt.subplots(figsize=(6.4, 5))
for degree, marker, colour in [(1, "o", "C0"), (2, "s", "C1")]:
    at = [i for i, subset in enumerate(strongest) if len(subset) == degree]
    bars = [value[at] - low[at], high[at] - value[at]]
    label = ("one site", "two sites")[degree - 1]
    ax.errorbar(value[at], at, xerr=bars, fmt=marker, color=colour, capsize=2, label=label)
ax.axvline(0, color="0.5", lw=1)
ax.set_yticks(range(len(strongest)), [" × ".join(names[i] for i in subset) for subset in strongest])
ax.invert_yaxis()
ax.set(
    xlabel="effect on brightness (bar: 95 % interval)",
    title="The strongest sites and pairs",
)
ax.legend()
plt.show()

# %%
# **What one learns.** Six hundred variants of 8,192 are enough, because the landscape is close to a
# polynomial of low degree, and the held-out score says so before the others are measured. Pairs
# are as strong as single sites, so adding up single mutations would mislead. Intervals are for
# subsets named beforehand; of the sixteen strongest of ninety-one, a few may miss.
#
# The same from a shell, with a report of one page: ``sparsact fit variants.csv --target brightness
# --report report.html``.
#
# .. [1] F. J. Poelwijk, M. Socolich, R. Ranganathan, "Learning the pattern of epistasis linking
#    genotype and phenotype in a protein", Nature Communications 10:4213, 2019.
