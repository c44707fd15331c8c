"""
A protein landscape
===================

**The job.** Thirteen sites of a protein may each be mutated or not, and a few hundred of the 8,192
variants have been measured. Which sites matter, which pairs of sites act together, how sure is
that, and how bright are the others?

The complete landscape between two fluorescent proteins has been measured [1]_. Where the
environment variable ``SPARSACT_DATA`` names a folder that holds it, this page uses it; otherwise a
landscape of the same kind is drawn: sites of unequal strength, pairs and a triple that act
together, and noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa
from sparsact.datasets import poelwijk


def drawn_landscape(rng):
    """Every variant of 13 sites, as rows of bits, and a brightness for each."""
    n = 13
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    signs = 1 - 2 * bits
    sites = rng.permutation(n)
    brightness = 0.8 + signs[:, sites[:6]] @ np.array([0.22, -0.15, 0.12, 0.08, -0.05, 0.03])
    for first, second, strength in [(0, 1, 0.15), (0, 2, -0.10), (3, 5, 0.07)]:
        brightness += strength * signs[:, sites[first]] * signs[:, sites[second]]
    brightness += 0.06 * signs[:, sites[[0, 1, 4]]].prod(axis=1)
    return bits, brightness + rng.normal(0, 0.06, 2**n), tuple(f"site {i + 1}" for i in range(n))


rng = np.random.default_rng(0)
try:
    landscape = poelwijk()
    X, y, names = landscape.X, landscape.y, tuple(f"site {i + 1}" for i in range(13))
    print("measured:", landscape.source)
except FileNotFoundError:
    X, y, names = drawn_landscape(rng)
    print("drawn: a landscape of the same kind")

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
# The predictions beside the truth. Points on the grey line would be exact.

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
# A coefficient belongs to a product of signs, +1 for a site as it was and -1 for a mutated one. Its
# interval tells how sure it is. Switching one site, all else averaged, changes the brightness by -2
# times its coefficient.

plain = sa.LowDegreeRegressor(degree=2).fit(X[seen], y[seen])
strongest = [subset for subset, _ in plain.spectrum_.top(16, min_degree=1)]
low, high = plain.confidence_intervals(strongest).T
value = np.array([plain.spectrum_.coefficient(subset) for subset in strongest])

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
    xlabel="coefficient, units of brightness (bar: 95 % interval)",
    title="The strongest sites and pairs",
)
ax.legend()
plt.show()

# %%
# **What one learns.** Six hundred variants of 8,192 are enough, because the landscape is close to a
# polynomial of low degree, and the held-out score says so before the others are measured. Pairs
# stand beside single sites in strength: to add up mutations would mislead. Intervals are for
# subsets named beforehand; of the sixteen strongest of ninety-one, a few may miss.
#
# The same from a shell, with a report of one page: ``sparsact fit variants.csv --target brightness
# --report report.html``.
#
# .. [1] F. J. Poelwijk, M. Socolich, R. Ranganathan, "Learning the pattern of epistasis linking
#    genotype and phenotype in a protein", Nature Communications 10:4213, 2019.
