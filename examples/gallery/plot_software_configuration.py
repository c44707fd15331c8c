"""
A software configuration
========================

**The job.** A program has ten switches, and its run time depends on them and on how they meet. Each
measurement takes minutes; all 1,024 would take days. Which switches matter, which depend on one
another, and which setting is fast?

The complete cube of ten options of LLVM has been measured [1]_. Where the environment variable
``SPARSACT_DATA`` names a folder that holds it, this page uses it; otherwise a program of the same
kind is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa
from sparsact.datasets import config_performance


def drawn_program(rng):
    """Run time in seconds of all settings of ten switches."""
    names = (
        "inline",
        "unroll",
        "cache",
        "compress",
        "threads",
        "checks",
        "log",
        "sync",
        "prefetch",
        "debug",
    )
    X = (np.arange(2**10)[:, None] >> np.arange(10)) & 1
    seconds = 230 + X @ np.array([-14.0, -3.0, -20.0, 9.0, -25.0, 6.0, 1.5, 11.0, -2.0, 4.0])
    seconds += 16.0 * X[:, 4] * X[:, 7]  # threads wait for each other where writes are synchronous
    seconds += 9.0 * X[:, 2] * X[:, 3] - 6.0 * X[:, 0] * X[:, 1]
    return X, seconds * rng.normal(1, 0.008, len(X)), names


rng = np.random.default_rng(3)
try:
    program = config_performance("LLVM")
    X, seconds, names = program.X, program.y, program.names
    print("measured:", program.source)
except FileNotFoundError:
    X, seconds, names = drawn_program(rng)
    print("drawn: a program of the same kind")

measured = rng.permutation(len(X))[:150]
known = seconds[measured]
print(f"{len(known)} of {len(X):,} settings are measured: {known.min():.1f} to {known.max():.1f} s")

# %%
# What each switch does, and what two do together
# -----------------------------------------------
#
# :class:`~sparsact.LowDegreeRegressor` works with signs: the coefficient of a switch is minus half
# of what switching it on adds, all else averaged, and that of a pair is a quarter of what the two
# add beyond their sum. The picture shows seconds.

model = sa.LowDegreeRegressor(degree=2).fit(X[measured], known)
print(f"{len(model.subsets_)} coefficients; what is left has {model.residual_variance_**0.5:.2f} s")

subsets = [subset for subset, _ in model.spectrum_.top(14, min_degree=1)]
limits = model.confidence_intervals(subsets, confidence=1 - 0.05 / len(model.coefficients_))
factor = np.array([(-2.0, 4.0)[len(subset) - 1] for subset in subsets])
effect = factor * np.array([model.spectrum_.coefficient(subset) for subset in subsets])
reach = np.abs(factor) * (limits[:, 1] - limits[:, 0]) / 2

fig, ax = plt.subplots(figsize=(6.6, 4.6))
for degree, marker, label in [(1, "o", "a switch"), (2, "s", "two switches, beyond their sum")]:
    at = [i for i, subset in enumerate(subsets) if len(subset) == degree]
    ax.errorbar(effect[at], at, xerr=reach[at], fmt=marker, capsize=2.5, label=label)
ax.axvline(0, color="0.5", lw=1)
ax.set_yticks(range(len(subsets)), [" × ".join(names[i] for i in subset) for subset in subsets])
ax.invert_yaxis()
ax.set(
    xlabel="seconds that it adds (bar: 95 % interval, for all together)",
    title="What switches do to run time",
)
fig.legend(loc="outside upper center", ncols=2)
plt.show()

# %%
# Which setting is fast?
# ----------------------
#
# The polynomial predicts all 1,024 settings at once. The ten that it takes to be fastest are worth
# measuring.

predicted = model.predict(X)
candidates = np.argsort(predicted)[:10]
best = candidates[np.argmin(seconds[candidates])]
rank = int((seconds < seconds[best]).sum()) + 1
print(f"best of the ten: {seconds[best]:.1f} s, number {rank} of {len(X):,}")
print(f"best of those measured before: {known.min():.1f} s")

fig, ax = plt.subplots(figsize=(5.4, 4.4))
ax.scatter(predicted, seconds, s=9, color="C6", label="all settings")
ax.scatter(predicted[measured], known, s=14, color="C0", marker="o", label="measured")
ax.scatter(
    predicted[candidates], seconds[candidates], s=42, color="C1", marker="D", label="ten to try"
)
ends = [seconds.min(), seconds.max()]
ax.plot(ends, ends, color="0.4", lw=1, ls="--", label="exact")
ax.set(xlabel="run time, predicted, s", ylabel="run time, s")
ax.legend()
plt.show()

# %%
# How sure is the degree?
# -----------------------
#
# Held-out rows say what each degree is worth, before anything else is measured.

for degree in (0, 1, 2, 3):
    chosen = sa.LowDegreeRegressorCV(degrees=(degree,)).fit(X[measured], known)
    print(f"degree {degree}: held-out R² {chosen.best_score_:.3f}")

# %%
# **What one learns.** With a seventh of the settings measured, the few switches and pairs that
# matter stand apart from zero, with intervals that hold for all coefficients together, and a fast
# setting is found by measuring ten more. Switches that are bound to each other (of two, exactly one
# may be on) make columns that depend on each other: predictions of allowed settings stay right,
# single coefficients then depend on the choice of least norm.
#
# .. [1] N. Siegmund et al., "Predicting performance via automated feature-interaction detection",
#    ICSE 2012.
