"""Paper B's future work: the feed-forward layers of a transformer, routed by a hash, by a tree and by top-k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sparsact_papers.experiments import Experiment, Scale, characters
from sparsact_papers.experiments.practice.routed_transformer_claims import (
    ACTIVE,
    CLAIMS,
    DENSE,
    MODELS,
    NARROW,
    TABLES,
    TOP_K,
    TREE,
)
from sparsact_papers.experiments.task import Parameter

if TYPE_CHECKING:
    from torch import nn

    from sparsact.layers import Flops
    from sparsact.routing import Router

LEVELS = ACTIVE.bit_length() - 1  # of a tree, or hyperplanes of a table: as many buckets as there are active shares


def parameters(scale: Scale) -> Iterator[dict[str, Parameter]]:
    """Each model, one seed after the other."""
    for seed in range(characters.SEEDS[scale]):
        yield from ({"model": name, **characters.chosen(scale, seed)} for name in MODELS)


def measure(
    *,
    model: str,
    width: int,
    n_layers: int,
    hidden: int,
    context: int,
    batch: int,
    steps: int,
    windows: int,
    seed: int,
) -> dict[str, Any]:
    """Validation loss in nats while training, and operations for a token, forward, of routing and of units."""
    from sparsact_papers.training import train

    def layer(width: int, hidden: int) -> nn.Module:
        return feed_forward(model, width, hidden)

    made = characters.model(
        width=width, n_layers=n_layers, hidden=hidden, context=context, seed=seed, feed_forward=layer
    )
    recipe = characters.recipe(steps=steps, batch=batch, context=context, windows=windows, seed=seed)
    rows = train(made, characters.text(), recipe)
    cost = flops(model, width, hidden)
    return {
        "at": [row.step for row in rows],
        "losses": [row.loss for row in rows],
        "routing_flops": n_layers * cost.routing,
        "active_flops": n_layers * cost.active,
        "flops": n_layers * cost.total,
        "other_flops": characters.other_flops(width=width, n_layers=n_layers, context=context),
        "parameters": sum(parameter.numel() for parameter in made.parameters()),
    }


def feed_forward(model: str, width: int, hidden: int) -> nn.Module:
    """A layer of ``hidden`` units of which one in :data:`ACTIVE` is on; dense ones have all of theirs on."""
    from sparsact.layers import SparselyActivatedLayer
    from sparsact_papers.training import FeedForward

    if model in (DENSE, NARROW):
        return FeedForward(width, hidden if model == DENSE else hidden // ACTIVE)
    return SparselyActivatedLayer(width, hidden, width, router=router(model, hidden))


def router(model: str, hidden: int) -> Router:
    """What chooses: each of its units is a block of neighbours, as many as make one in :data:`ACTIVE` active."""
    from sparsact.routing import HyperplaneLSH, TopK, Tree

    if model in TABLES:
        return HyperplaneLSH(LEVELS, n_tables=TABLES[model])
    return {TREE: Tree(LEVELS), TOP_K: TopK(hidden // ACTIVE)}[model]


def flops(model: str, width: int, hidden: int) -> Flops:
    """What a layer costs a token."""
    from sparsact.layers import Flops, SparselyActivatedLayer

    layer = feed_forward(model, width, hidden)
    if isinstance(layer, SparselyActivatedLayer):
        return layer.flops()
    units = 4 * width * (hidden if model == DENSE else hidden // ACTIVE)
    return Flops(0, units, units)


EXPERIMENT = Experiment(
    name="routed-transformer",
    paper="practice",
    place="Paper B, future work: LSH inside transformers",
    title="Feed-forward layers of a transformer, routed",
    summary=(
        "Decoders that learn the next character of tinyshakespeare, all alike but for their feed-forward layers: dense "
        f"with ReLU; of the same width with one unit in {ACTIVE} on, chosen by random hyperplanes in one table or "
        f"in four (HyperplaneLSH), by a tree of learned hyperplanes, or by the largest pre-activations; and dense "
        f"of {ACTIVE} times fewer units. A bucket or a leaf stands for neighbouring units; the tree mixes all its "
        "leaves while it is trained and takes one when it is evaluated. At full size: 4 layers of width 128 with 512 "
        "units, 64 on. "
        "Operations are those of a forward pass for one token, in all feed-forward layers, routing included."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    order=20,
    unmet=characters.unmet,
)
