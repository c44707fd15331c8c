"""
A tour of paper B
=================

**The job.** You have read *A Theoretical View on Sparsely Activated Networks* [1]_ and want to see
its argument: a table of hashed cells learns a Lipschitz function with one unit on, where a dense
layer needs many; the error falls with the number of cells as the theorem says; what routes in
practice is a case of one model; and random routing is another matter.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

import sparsact as sa
from sparsact import routing
from sparsact_papers import dsm
from sparsact_papers.data import LowerEnvelope, random_subspace

rng = np.random.default_rng(0)

# %%
# One dimension: a staircase
# --------------------------
#
# A table of intervals with a number in each is a network with one unit on. It is compared with
# frozen random ReLU layers with *all* units on, fitted in closed form.

x = rng.uniform(-1, 1, (4_000, 1))


def wave(x):
    """A sum of three cosines."""
    return (
        np.cos(3.1 * x[:, 0] + 1) / 3 + np.cos(7.3 * x[:, 0] + 4) / 3 + np.cos(11.7 * x[:, 0]) / 3
    )


line = np.linspace(-1, 1, 1_000)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(9.2, 3.8), sharey=True)
for ax, n_units in zip(axes, (16, 64), strict=True):
    table = sa.LSHRegressor(
        1, 1, 2 / n_units, 0, "euclidean", random_state=0, directions="principal"
    ).fit(x, wave(x))
    dense = sa.DSMRegressor(n_units, n_units, activation="relu", bias=True, random_state=0).fit(
        x, wave(x)
    )
    ax.plot(line, wave(line), color="0.3", lw=2.5, alpha=0.5, label="the function")
    ax.plot(line, dense.predict(line), color="C0", ls="--", label=f"dense, {n_units} units on")
    ax.plot(line, table.predict(line), color="C1", label=f"{table.n_buckets_} cells, 1 unit on")
    ax.set(xlabel="x")
    ax.legend(fontsize=8.5, loc="lower left")
axes[0].set(ylabel="f(x)", ylim=(-1.6, 1.2))
plt.show()

# %%
# Theorem 4.1: the slope
# ----------------------
#
# On a subspace of k dimensions among 16, the largest error should fall with the number of cells
# like its power -1/k. Width after width, the same learner with smaller cells.

fig, ax = plt.subplots(figsize=(5.8, 4.2))
for k, widths, marker in [(1, 2.0 ** -np.arange(6), "o"), (2, 2.0 ** -np.arange(-2, 3), "s")]:
    domain = random_subspace(16, k, rng=rng)
    centres = domain.coordinates(domain.sample(3, rng=rng))
    target = LowerEnvelope(centres, rng.uniform(0, 0.5, 3))
    X, new = domain.sample(40_000, rng=rng), domain.sample(2_000, rng=rng)
    y, truth = target(domain.coordinates(X)), target(domain.coordinates(new))
    cells, largest = [], []
    for width in widths:
        table = sa.LSHRegressor(
            1, 4 * k, width, 0, "euclidean", random_state=1, directions="principal"
        ).fit(X, y)
        cells.append(table.n_buckets_)
        largest.append(np.abs(table.predict(new) - truth).max())
    slope = np.polyfit(np.log(cells), np.log(largest), 1)[0]
    ax.plot(cells, largest, marker=marker, label=f"k = {k}: slope {slope:.2f}, theory {-1 / k:g}")
ax.set(
    xscale="log", yscale="log", xlabel="cells that hold rows", ylabel="largest error on new points"
)
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
ax.legend()
plt.show()

# %%
# The same theorem asked beforehand: what does an error of 0.25 need?

for k in (1, 2, 3):
    plan = sa.plan_table(k, 0.25, ambient=16)
    sizes = f"{plan.n_hashes} directions, buckets {plan.bucket_width:.3f} wide"
    print(f"k = {k}: {sizes}, {plan.samples:.2g} rows")

# %%
# Everything is one model
# -----------------------
#
# Section 3: nearest neighbours, tables and mixtures of experts are data-dependent sparse models, a
# mask and a matrix.

points = rng.normal(size=(60, 3))
values = np.sin(points[:, 0])
model = dsm.from_nearest(points, values, k=4)
query = rng.normal(size=(500, 3))
neighbours = KNeighborsRegressor(4).fit(points, values)
print(
    "differs from 4 nearest neighbours by",
    float(np.abs(model(query)[:, 0] - neighbours.predict(query)).max().round(12)),
)

# %%
# Does near mean alike?
# ---------------------
#
# A router by hyperplanes sends near inputs to the same units; a random hash of the input's bits
# tells nothing of distance. A table is only as good as that.

anchor = rng.normal(size=(400, 16))
direction = rng.normal(size=(400, 16))
direction /= np.linalg.norm(direction, axis=1, keepdims=True)
routers = {
    "hyperplanes, 4 a table": routing.HyperplaneLSH(n_hashes=4, n_tables=1),
    "Euclidean cells": routing.EuclideanLSH(n_hashes=2, bucket_width=6.0, n_buckets=256),
    "random hash": routing.RandomHash(n_active=1, n_units=16),
}
distances = np.array([0.001, 0.1, 0.25, 0.5, 1, 2, 4, 8])
fig, ax = plt.subplots(figsize=(5.8, 4))
for (name, router), marker in zip(routers.items(), "os^", strict=True):
    here = router(anchor).indices
    alike = [
        np.mean(router(anchor + distance * direction).indices == here) for distance in distances
    ]
    ax.plot(range(len(distances)), alike, marker=marker, label=name)
ax.set_xticks(range(len(distances)), [f"{distance:g}" for distance in distances])
ax.set(
    xlabel="distance of two inputs", ylabel="share of pairs sent to the same unit", ylim=(0, 1.05)
)
ax.legend()
plt.show()

# %%
# **What one learns.** One unit that is on, if it is the right one, does what a dense layer does,
# and the number of cells grows with the intrinsic dimension and not with that of the columns.
# What matters is that the mask keeps near inputs together. From here, more tables and lines in
# cells make the learner of :doc:`plot_fast_regression`; all figures of the paper are in
# :doc:`/reproduce`.
#
# .. [1] C. Baykal, N. Dikkala, R. Panigrahy, C. Rashtchian, X. Wang, "A Theoretical View on
#    Sparsely Activated Networks", 2022.
