"""
A circuit, from ablations
=========================

**The job.** A model has sixteen components: attention heads, say. You can switch off any set of
them and read how much of the model's answer is left. Which components make the answer, which work
in series, and which stand in for others?

Two components *in series* are worth something only together; where one *stands in* for another, to
lose one costs little and to lose both costs much. To ablate one at a time sees neither. Random
masks and a polynomial see both. The model of this page is a stand-in with a circuit that we know,
so that we can check what is found.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsact as sa

HEADS = tuple(f"head {layer}.{head}" for layer in range(4) for head in range(4))
EARLY, INDUCTION, MOVER, BACKUP, INHIBITOR = 2, 6, 9, 14, 11


def answer(ablated, rng):
    """Logits of the stand-in, with noise, for masks (m, 16); a 1 switches a head off."""
    on = 1 - ablated
    series = 2.0 * on[:, EARLY] * on[:, INDUCTION]
    moved = 1.6 * np.maximum(on[:, MOVER], 0.8 * on[:, BACKUP])
    return series + moved - 0.5 * on[:, INHIBITOR] + rng.normal(0, 0.2, len(ablated))


rng = np.random.default_rng(0)
masks = rng.integers(0, 2, (400, len(HEADS)))
logits = answer(masks, rng)

one_at_a_time = np.eye(len(HEADS), dtype=int)
whole = answer(np.zeros((1, len(HEADS)), dtype=int), rng)[0]
lost = whole - answer(one_at_a_time, rng)
print(
    "one head off at a time, what is lost:",
    {HEADS[i]: round(float(lost[i]), 1) for i in np.argsort(-lost)[:4]},
)
print(f"{HEADS[MOVER]} carries 1.6 and costs {lost[MOVER]:.1f}: {HEADS[BACKUP]} stands in for it")

# %%
# Every pair at once
# ------------------
#
# Four hundred random masks, and a polynomial of degree 2 in the signs, +1 for a head that is on.
# Its coefficients are halves of what a head is worth, all else averaged, and quarters of what two
# are worth beyond the sum.

model = sa.LowDegreeRegressorCV(degrees=(1, 2, 3)).fit(masks, logits)
print(f"degree {model.degree_}: held-out R² {model.best_score_:.3f}")

fitted = sa.LowDegreeRegressor(degree=2).fit(masks, logits)
pairs = [(i, j) for i in range(len(HEADS)) for j in range(i + 1, len(HEADS))]
value = np.array([fitted.spectrum_.coefficient(pair) for pair in pairs])
low, high = fitted.confidence_intervals(
    pairs, confidence=1 - 0.05 / len(pairs)
).T  # for all pairs together

matrix = np.full((len(HEADS), len(HEADS)), np.nan)
for (i, j), together in zip(pairs, value, strict=True):
    matrix[j, i] = together

fig, ax = plt.subplots(figsize=(6.6, 5.4))
image = ax.imshow(matrix, cmap="PuOr", vmin=-0.5, vmax=0.5)
for k in np.flatnonzero((low > 0) | (high < 0)):
    ax.plot(*pairs[k], marker="s", ms=13, mfc="none", mec="black", mew=1.3, ls="none")
ax.plot(
    [],
    [],
    marker="s",
    ms=9,
    mfc="none",
    mec="black",
    mew=1.3,
    ls="none",
    label="not 0, at 95 % for all pairs",
)
ax.set_xticks(range(len(HEADS)), HEADS, rotation=90)
ax.set_yticks(range(len(HEADS)), HEADS)
ax.grid(visible=False)
ax.set_title("What two heads are worth together")
ax.legend(loc="upper right")
fig.colorbar(image, label="coefficient, logits\nstand-in  <  0  <  in series", shrink=0.8)
plt.show()

for k in np.flatnonzero((low > 0) | (high < 0)):
    kind = "in series" if value[k] > 0 else "one stands in for the other"
    print(f"{HEADS[pairs[k][0]]} and {HEADS[pairs[k][1]]}: {value[k]:+.2f}, {kind}")

# %%
# How many ablations are enough?
# ------------------------------
#
# Each ablation is a run of the model. Rows are added to what was learned before:
# :meth:`~sparsact.LowDegreeRegressor.partial_fit` keeps sums, and gives the same bits as one fit of
# them all.

fresh = rng.integers(0, 2, (4000, len(HEADS)))
truth = answer(fresh, rng)
counts = np.array([50, 100, 150, 200, 300, 400])
fig, ax = plt.subplots(figsize=(5.6, 3.8))
for degree, marker in [(1, "o"), (2, "s")]:
    growing, errors, begin = sa.LowDegreeRegressor(degree=degree, alpha=3.0), [], 0
    for end in counts:
        growing.partial_fit(masks[begin:end], logits[begin:end])
        errors.append(np.sqrt(np.mean((growing.predict(fresh) - truth) ** 2)))
        begin = end
    ax.plot(
        counts, errors, marker=marker, label=("heads one by one", "heads and pairs")[degree - 1]
    )
ax.axhline(0.2, color="0.4", ls="--", lw=1, label="noise of a run")
ax.set(xlabel="ablations", ylabel="error on new masks, logits", ylim=(0, None))
ax.legend()
plt.show()

# %%
# **What one learns.** The heads in series and the stand-in are found, with their signs, among 120
# pairs, and no other pair is taken for one. About two hundred runs are enough here; the linear
# model never gets there, however many.
#
# A circuit whose answer is a *parity* of many heads has no weight at low degree, and this way is
# blind to it: see the hard functions in :doc:`plot_tour_of_paper_a`.
