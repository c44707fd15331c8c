"""
Fast regression with updates
============================

**The job.** Twenty sensors describe the state of a machine, and a model must predict within
microseconds how far it is from its limit. Rows arrive all the time, and old ones must go: the
machine wears.

The sensors say the same few things in many ways: rows fill three dimensions of twenty.
:class:`~sparsact.LSHRegressor` cuts that space into cells, several times over, and keeps in each
cell the sums of its rows. Sums can be added and taken away, and a look-up costs the same however
many rows there were.
"""

# sphinx_gallery_thumbnail_number = 2
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

import sparsact as sa

rng = np.random.default_rng(0)
MIXING = rng.normal(size=(3, 20))


def readings(m, wear=0.0):
    """Rows (m, 20) and how far the machine is from its limit: a kink, shifted by wear."""
    state = rng.uniform(-1, 1, (m, 3))
    X = state @ MIXING + 0.01 * rng.normal(size=(m, 20))
    y = np.abs(state[:, 0] - wear) + np.sin(3 * state[:, 1]) * state[:, 2]
    return X, y + 0.02 * rng.normal(size=m)


def error(model, X, y):
    """Root mean square."""
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


# %%
# More rows, less error, the same cost
# ------------------------------------
#
# ``fit`` chooses directions and cell width on the first rows; ``partial_fit`` adds the others.
# For comparison, nearest neighbours search all rows for each prediction.

X, y = readings(8_000)
fresh, truth = readings(2_000)
sizes = [1_000, 2_000, 4_000, 8_000]
errors = {"LSHRegressor": [], "8 nearest neighbours": []}
for size in sizes:
    tables = sa.LSHRegressor(random_state=0).fit(X[:size], y[:size])
    neighbours = KNeighborsRegressor(8).fit(X[:size], y[:size])
    errors["LSHRegressor"].append(error(tables, fresh, truth))
    errors["8 nearest neighbours"].append(error(neighbours, fresh, truth))

start = perf_counter()
tables.predict(fresh)
micro = (perf_counter() - start) / len(fresh) * 1e6
print(f"{tables.n_samples_seen_:,} rows in {tables.n_buckets_:,} buckets of 16 tables")
print(f"a prediction takes about {micro:.1f} µs here, many at once")

fig, ax = plt.subplots(figsize=(5.6, 3.8))
for (name, values), marker in zip(errors.items(), "os", strict=True):
    ax.plot(sizes, values, marker=marker, label=name)
ax.axhline(0.02, color="0.4", ls="--", lw=1, label="noise")
ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="root mean square error on new rows")
ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
ax.set_yticks([0.02, 0.05, 0.1, 0.2], ["0.02", "0.05", "0.1", "0.2"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# What the cells look like
# ------------------------
#
# Cells can be seen where there are two columns. Each table is a grid of its own, turned and shifted
# at random; their average is smooth. ``apply`` gives the bucket of each row in each table.

flat = rng.uniform(-1, 1, (4_000, 2))
height = np.abs(flat[:, 0]) + np.sin(3 * flat[:, 1])
small = sa.LSHRegressor(n_tables=16, random_state=1).fit(flat, height)
side = np.linspace(-1, 1, 240)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.1))
for table, ax in enumerate(axes[:2]):
    buckets = small.apply(grid)[:, table]
    shade = np.random.default_rng(table).permutation(buckets.max() + 1)[buckets]
    ax.imshow(
        shade.reshape(240, 240),
        extent=(-1, 1, -1, 1),
        origin="lower",
        cmap="cividis",
        interpolation="nearest",
    )
    ax.set(title=f"cells of table {table + 1} of 16", xlabel="first column", ylabel="second column")
image = axes[2].imshow(
    small.predict(grid).reshape(240, 240), extent=(-1, 1, -1, 1), origin="lower", cmap="viridis"
)
axes[2].set(title="what all tables say together", xlabel="first column")
for ax in axes:
    ax.grid(visible=False)
fig.colorbar(image, ax=axes[2], label="prediction", shrink=0.8)
plt.show()

# %%
# Rows that go
# ------------
#
# The machine wears: the kink moves by 0.04 with each batch of a thousand rows. One model keeps all
# rows, the other gives back the batch of four steps ago, and both are asked about the present.

keeping = sa.LSHRegressor(random_state=0).fit(X[:4_000], y[:4_000])
moving = sa.LSHRegressor(random_state=0).fit(X[:4_000], y[:4_000])
window = [(X[i : i + 1_000], y[i : i + 1_000]) for i in range(0, 4_000, 1_000)]
told = {"keeps all rows": [], "keeps the last 4,000": []}
for step in range(1, 9):
    batch = readings(1_000, wear=0.04 * step)
    keeping.partial_fit(*batch)
    moving.partial_fit(*batch).remove(*window.pop(0))
    window.append(batch)
    now = readings(1_000, wear=0.04 * step)
    told["keeps all rows"].append(error(keeping, *now))
    told["keeps the last 4,000"].append(error(moving, *now))
print(f"rows held: {keeping.n_samples_seen_:,} and {moving.n_samples_seen_:,}")

fig, ax = plt.subplots(figsize=(5.6, 3.6))
for (name, values), marker in zip(told.items(), "so", strict=True):
    ax.plot(range(1, 9), values, marker=marker, label=name)
ax.set(
    xlabel="batches of 1,000 rows since the start", ylabel="error on rows of now", ylim=(0, None)
)
ax.legend()
plt.show()

# %%
# **What one learns.** Where twenty columns fill three dimensions, the tables err less than nearest
# neighbours at every number of rows here, and neither more rows nor forgotten ones change what an
# answer costs. To forget is exact: a row that was never added is refused. Where rows fill more than
# about ten dimensions, cells are empty or wide, and trees do better.
