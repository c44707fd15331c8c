"""
A sparsified transformer
========================

**The job.** You serve a transformer with ReLU on CPUs, one token at a time. How many of its units
are on, what can that save at most, and how does one get it without changing an answer?

So that the page runs anywhere it trains a small model of characters for some seconds, once as it is
and once with an L1 penalty on its activations. Take your own model instead: all that follows is
three calls.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import torch

import sparsact as sa
from sparsact_papers.training import (
    ActivationPenalty,
    CharacterText,
    Recipe,
    Transformer,
    train,
)

torch.set_num_threads(1)
UNITS = ("the cell", "a layer", "this gate", "one head", "the router")
VERBS = ("reads", "keeps", "drops", "chooses", "adds")
rng = np.random.default_rng(0)
text = CharacterText.of(
    "".join(f"{rng.choice(UNITS)} {rng.choice(VERBS)} {rng.choice(UNITS)}. " for _ in range(3_000))
)


def model():
    """Two layers of 384 units each, the same at first whenever it is made."""
    torch.manual_seed(0)
    return Transformer(
        len(text.characters), width=96, n_layers=2, n_heads=4, hidden=384, context=48
    )


# %%
# Training, plain and with a penalty
# ----------------------------------
#
# The penalty is the mean of the activations' absolute values: units that do little are switched
# off.

recipe = Recipe(
    steps=100, batch=12, context=48, learning_rate=3e-3, warmup=20, evaluate_every=10, windows=16
)
plain, penalised = model(), model()
courses = {"plain": train(plain, text, recipe, blocks=plain.feed_forward_blocks())}
blocks = penalised.feed_forward_blocks()
courses["L1 penalty"] = train(
    penalised, text, recipe, blocks=blocks, penalty=ActivationPenalty(penalised, blocks, 0.3)
)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for (name, course), marker in zip(courses.items(), "os", strict=True):
    steps = [row.step for row in course]
    left.plot(steps, [row.loss for row in course], marker=marker, ms=4, label=name)
    right.plot(
        steps, [100 * np.mean(row.density) for row in course], marker=marker, ms=4, label=name
    )
left.set(xlabel="steps", ylabel="validation loss, nats a character", ylim=(0, None))
right.set(xlabel="steps", ylabel="units that are on, %", ylim=(0, None))
left.legend()
plt.show()

# %%
# How sparse, and what can that save?
# -----------------------------------
#
# :func:`~sparsact.measure` shows the model some inputs. One token at a time, time is bytes of
# weights; the last columns are how many times fewer bytes a method may read at best.

shown, _ = text.windows(8, 48)
penalised.eval()
found = sa.measure(penalised, shown)
print(found)

fig, ax = plt.subplots(figsize=(6, 3.8))
sizes = [1, 4, 16]
for method, marker in [("oracle", "^"), ("certified", "s"), ("exact", "o")]:
    ax.plot(sizes, [found.bound(method, batch=size) for size in sizes], marker=marker, label=method)
ax.axhline(1, color="0.4", ls="--", lw=1, label="dense")
ax.set(
    xscale="log",
    xlabel="tokens at once",
    ylabel="whole model: times faster, at most",
    ylim=(0, None),
)
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# Computing only what is on
# -------------------------
#
# :func:`~sparsact.sparsify` changes how layers compute, not what. ``"exact"`` leaves out columns of
# the second matrix where the activation is exactly 0. The default, ``"auto"``, times the exact
# methods on this machine and leaves a block dense where nothing is gained, which for a model as
# small as this is likely.

with torch.no_grad():
    before = penalised(shown[:1, :1])
    sa.sparsify(penalised, "exact", shown)
    after = penalised(shown[:1, :1])
print(f"largest difference of a logit: {float((before - after).abs().max()):.1e}")
for choice in sa.plan_of(penalised).choices:
    print(f"{choice.block}: {choice.method}, at most {choice.bound:.2f} times faster")
penalised = sa.densify(penalised)

# %%
# **What one learns.** The penalty leaves one unit in eight on, where plain training leaves two in
# five; on this simple text it costs no loss, on a real one expect some. What can be saved is known
# before anything is changed, and shrinks with the number of tokens at once, because these need the
# union of their units. Whether the bound is reached depends on the machine: ``sparsact sparsify``
# times your own model, and :doc:`/inference` says when it does not pay.
