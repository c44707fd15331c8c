"""
A routed layer
==============

**The job.** You build a PyTorch model and want a layer with many units, but each input should pay
for few. Who should choose the units, what does the choosing cost, and are all units used?

A *router* chooses; :class:`~sparsact.layers.SparselyActivatedLayer` reads the weights of what was
chosen and no others. This page trains one layer of 256 units, 16 of them on for each input, with
five routers on the same task.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from sparsact import routing
from sparsact.layers import SparselyActivatedLayer

WIDTH, ACTIVE, COLUMNS = 256, 16, 8
ROUTERS = {
    "top k": routing.TopK(ACTIVE),
    "switch": routing.Switch(n_experts=WIDTH // ACTIVE, capacity_factor=None),
    "tree": routing.Tree(depth=4),
    "hyperplanes": routing.HyperplaneLSH(n_hashes=4, n_tables=1, random_state=1),
    "random hash": routing.RandomHash(n_active=1, n_units=WIDTH // ACTIVE),
}

# %%
# The task: a function with a crease, of inputs that lie in four clusters.

points = torch.Generator().manual_seed(0)
centres = 1.5 * torch.randn(4, COLUMNS, generator=points)


def batch(m):
    """Inputs (m, 8) and targets (m, 1)."""
    cluster = torch.randint(4, (m,), generator=points)
    x = centres[cluster] + torch.randn(m, COLUMNS, generator=points)
    y = (x[:, :2].sum(dim=1).abs() + torch.sin(2 * x[:, 2]) * x[:, 3])[:, None]
    return x, y


def train(router, steps=300):
    """A trained layer and its error (steps // 20) along the way, as a share of the variance."""
    layer = SparselyActivatedLayer(
        COLUMNS, WIDTH, 1, router=router, generator=torch.Generator().manual_seed(0)
    )
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    course = []
    for step in range(steps):
        x, y = batch(256)
        guess, selection = layer.forward_with_selection(x)
        loss = nn.functional.mse_loss(guess, y)
        optimizer.zero_grad()
        (loss + 0.01 * selection.auxiliary_loss).backward()
        optimizer.step()
        if step % 20 == 19:
            course.append(share_of_variance(layer))
    return layer, course


@torch.no_grad()
def share_of_variance(layer):
    """Error on inputs that are the same each time."""
    layer.eval()
    error = nn.functional.mse_loss(layer(test_x), test_y) / test_y.var()
    layer.train()
    return float(error)


torch.set_num_threads(1)
test_x, test_y = batch(2_000)
trained = {name: train(router) for name, router in ROUTERS.items()}

fig, ax = plt.subplots(figsize=(6, 4))
for (name, (_, course)), marker in zip(trained.items(), "os^Dv", strict=True):
    ax.plot(np.arange(20, 301, 20), course, marker=marker, ms=4, label=name)
ax.set(
    xlabel="steps of 256 inputs", ylabel="error on new inputs, share of the variance", yscale="log"
)
ax.set_yticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
ax.minorticks_off()
ax.legend(ncols=2)
plt.show()

# %%
# Are all units used?
# -------------------
#
# :class:`~sparsact.routing.RoutingStatistics` counts, and adds up over batches. A line that ends
# before 100 % leaves units without inputs; an even load is the dashed line.

fig, ax = plt.subplots(figsize=(6, 4))
for name, (layer, _) in trained.items():
    load = routing.RoutingStatistics.of(layer.eval().route(test_x))
    print(f"{name:11} busiest {load.imbalance:4.1f} times mean load, {load.dead_share:.0%} idle")
    share = np.sort(load.load)[::-1].cumsum()
    ax.plot(np.linspace(0, 1, len(share) + 1), [0, *share], lw=1.8, label=name)
ax.plot([0, 1], [0, 1], color="0.4", ls="--", lw=1, label="even")
ax.set(xlabel="share of the units, busiest first", ylabel="share of all choices")
ax.legend()
plt.show()

# %%
# What does it cost?
# ------------------
#
# To read the chosen units costs the same for all. To choose them does not: the top k of 256
# pre-activations are known only when all have been computed.

names = list(ROUTERS)
costs = [trained[name][0].flops() for name in names]
fig, ax = plt.subplots(figsize=(6, 3.4))
ax.barh(names, [cost.active for cost in costs], color="C0", label="units that are on")
ax.barh(
    names,
    [cost.routing for cost in costs],
    left=[cost.active for cost in costs],
    color="C4",
    hatch="//",
    label="choosing them",
)
ax.axvline(costs[0].dense, color="0.3", ls="--", lw=1, label="every unit on")
ax.invert_yaxis()
ax.set(xlabel="operations for one input")
ax.grid(visible=False, axis="y")
fig.legend(loc="outside upper center", ncols=3)
plt.show()

# %%
# **What one learns.** The router that looks at all pre-activations errs least here. Its choice
# costs nearly as much as a dense layer, though few units are read. A learned gate and fixed
# hyperplanes choose for a few hundred operations and err about twice as much. The gate left half
# of the units without inputs; :func:`~sparsact.routing.warn_of_collapse` warns of that in training.
# A random hash spreads the load evenly and does no better: similar inputs go to different units.
# The tree is trained with all leaves on, and predicts with one. So look at the error in evaluation
# mode, as this page does; otherwise the tree seems to be the best.
