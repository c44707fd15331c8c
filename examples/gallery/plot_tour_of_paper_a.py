"""
A tour of paper A
=================

**The job.** You have read *Learning Neural Networks with Sparse Activations* [1]_ and want to hold
its objects in your hands: a network with one unit on at a time, the proof of that, its
spectrum, the bound on its sensitivity, what low degree learns of it, what a search in the class
learns, and a function that no statistics can learn.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa
from sparsact import bounds, constructions
from sparsact.fourier import Spectrum, estimate_average_sensitivity
from sparsact.hardness import learn_parity, parity_contest

rng = np.random.default_rng(0)

# %%
# A network and its certificate
# -----------------------------
#
# Three address bits choose which of eight data bits is the answer: eleven inputs, eight units, and
# one of these on at most. The certificate is a proof, here by looking at every point.

network = constructions.indexing(3)
print(network)
print(network.certify())

# %%
# Spectrum: low degree, whatever the size
# ---------------------------------------
#
# Weight by degree of networks with random weights, k of 64 units on. Parity of the same inputs has
# all of its weight at the top.

fig, ax = plt.subplots(figsize=(6, 3.8))
n = 11
for k, marker in [(1, "o"), (4, "s"), (16, "^")]:
    weights = Spectrum.of(constructions.random_network(n, 64, k, rng=rng)).weight_by_degree()
    ax.plot(
        range(1, n + 1),
        weights[1:] / weights[1:].sum(),
        marker=marker,
        label=f"k = {k} of 64 units on",
    )
weights = Spectrum.of({tuple(range(n)): 1.0}, n=n).weight_by_degree()
ax.plot(
    range(1, n + 1),
    weights[1:] / weights[1:].sum(),
    marker="x",
    ls=":",
    color="0.3",
    label=f"parity of {n} bits",
)
ax.set(xlabel="degree", ylabel="share of the variance")
ax.legend()
plt.show()

# %%
# Sensitivity against its bound
# -----------------------------
#
# Lemma 9 bounds the average sensitivity of a k-sparse network; the bound of this package, :math:`4
# k^2 W^2`, has no n, no s and no B. Each point is a random network; below the line is what the
# theorem allows.

fig, ax = plt.subplots(figsize=(5.6, 4.2))
for n, marker in [(10, "o"), (40, "s"), (160, "^")]:
    pairs = []
    for k in (1, 2, 4, 8):
        drawn = constructions.random_network(n, 48, k, rng=rng)
        sensitivity = estimate_average_sensitivity(drawn, n_samples=300, rng=rng)
        pairs.append((bounds.average_sensitivity_bound(k, drawn.scale().W), sensitivity.value))
    ax.plot(*zip(*pairs, strict=True), marker=marker, ls="none", label=f"n = {n}, k = 1, 2, 4, 8")
ends = [50, 3e4]
ax.plot(ends, ends, color="0.4", ls="--", lw=1, label="the bound")
ax.set(xscale="log", yscale="log", xlabel="4 k² W²", ylabel="average sensitivity, estimated")
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter("{x:g}")
ax.legend(fontsize=9)
plt.show()

# %%
# Low degree, and learning in the class
# -------------------------------------
#
# Theorem 8 learns k-sparse networks by polynomials of low degree; Theorem 17 says that far fewer
# rows are enough for a search among networks, and nothing about the time. Both learn the indexing
# function, whose degree is 4.

test = 1 - 2 * rng.integers(0, 2, (3_000, network.n))
truth = network(test)
counts = [50, 100, 200, 400, 800, 1_600]
learners = {
    "degree 2": lambda: sa.LowDegreeRegressor(degree=2, alpha=1.0),
    "degree 4": lambda: sa.LowDegreeRegressor(degree=4, alpha=1.0),
    "network of 8 units, 1 on": lambda: sa.SparselyActivatedRegressor(
        n_units=8, n_restarts=2, random_state=0
    ),
}
fig, ax = plt.subplots(figsize=(5.8, 4))
for (name, make), marker in zip(learners.items(), "os^", strict=True):
    errors = []
    for m in counts:
        X = 1 - 2 * rng.integers(0, 2, (m, network.n))
        errors.append(np.mean((make().fit(X, network(X)).predict(test) - truth) ** 2) / truth.var())
    ax.plot(counts, np.maximum(errors, 1e-4), marker=marker, label=name)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="rows",
    ylabel="error on new rows, share of the variance\n(0.0001 or less)",
)
ax.set_xticks(counts, [f"{m:,}" for m in counts])
ax.yaxis.set_major_formatter("{x:g}")
ax.xaxis.set_minor_locator(plt.NullLocator())
fig.legend(loc="outside upper center", ncols=3, fontsize=9)
plt.show()

# %%
# What statistics cannot learn
# ----------------------------
#
# Theorem 14: parity is a one-sparse network on the pairs of its bits, and yet statistical queries
# fail. Elimination, which looks at examples and not at averages, finds it from a few more examples
# than bits.

for row in parity_contest(10, [0, 2, 3, 7, 8], rng=rng):
    error = "over its budget" if row.error is None else f"error {row.error:.2f}"
    print(
        f"{row.access:20} {row.inputs:7} {row.learner:20}"
        f"{row.queries + row.examples:8,} looks: {error}"
    )

bits = 1 - 2 * rng.integers(0, 2, (40, 24))
hidden = [1, 5, 8, 13, 21]
print("from 40 examples of 24 bits:", learn_parity(bits, bits[:, hidden].prod(axis=1)).subset)

# %%
# **What one learns.** Sparse activation keeps weight at low degree, by a bound that knows k and W
# alone; low degree then learns, with rows that grow like :math:`n^d`. Searching the class needs
# fewer rows where it succeeds. And there are sparsely activated functions that neither way can
# learn from averages. All figures of the paper: :doc:`/reproduce`; each bound and its proof:
# :doc:`/sharper_bounds`.
#
# .. [1] P. Awasthi, N. Dikkala, P. Kamath, R. Meka, "Learning Neural Networks with Sparse
#    Activations", COLT 2024.
