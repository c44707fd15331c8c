"""Paper B's future work: the feed-forward layers of a transformer, routed by a hash, by a tree and by top-k."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsact.reports.figure import COLOURS, Chart, Frame, figure, list_axis, rows, styled
from sparsact_papers.charts import curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common import characters
from sparsact_papers.experiment import Experiment, Rows
from sparsact_papers.intervals import mean_of, range_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import nn

    from sparsact.layers import Flops
    from sparsact.routing import Router


ACTIVE = 8  # one unit in so many is on
LEVELS = ACTIVE.bit_length() - 1  # of a tree, or hyperplanes of a table: as many buckets as there are active shares


def measure(
    *, model: str, width: int, n_layers: int, hidden: int, context: int, batch: int, steps: int, windows: int, seed: int
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


DENSE, NARROW, TREE, TOP_K = "dense", "dense, narrow", "tree", "top-k"
LSH, LSH_4 = "LSH, 1 table", "LSH, 4 tables"
TABLES = {LSH: 1, LSH_4: 4}
MODELS = (DENSE, NARROW, LSH, LSH_4, TREE, TOP_K)
NEAR = 0.05
CHEAP = 2 / ACTIVE  # routing costs no more than the active units
TOP_K_COSTS = 0.5  # every pre-activation, which is half of the operations


def differences(rows: Rows, one: str, other: str) -> list[float]:
    """Nats by which the last loss of a model exceeds another's, for each seed that has both."""
    pairs = needed(rows.where(model=one).paired(rows.where(model=other), "seed"), f"a pair of {one} and {other}")
    return [row["losses"][-1] - beside["losses"][-1] for row, beside in pairs]


def _judge_losses(rows: Rows, models: tuple[str, ...], other: str, most: float) -> Verdict:
    return every(
        *(
            within(mean_of(differences(rows, model, other)), most=most, what=f"{model} minus {other}, nats:")
            for model in models
        )
    )


def share_of_dense(rows: Rows, model: str) -> list[float]:
    """Operations of a model's feed-forward layers, routing included, over those of the dense ones."""
    whole = needed(rows.where(model=DENSE), DENSE)[0]["flops"]
    return [row["flops"] / whole for row in needed(rows.where(model=model), model)]


PAIRS = "by the 95 % interval of the mean over seeds, in pairs of one seed"
GAIN = f"holds if its validation loss is lower than that of the narrow dense layers, {PAIRS}"
LOSSES = (
    ("lsh-gains", "Layers routed by LSH are better than dense ones with as many units as are active.", (LSH, LSH_4)),
    ("tree-gains", "So are layers routed by a tree.", (TREE,)),
    ("top-k-gains", "So are layers that keep the largest pre-activations.", (TOP_K,)),
)
CLAIMS = (
    *(
        Claim(
            name=name,
            place="Paper B, future work",
            statement=statement,
            rule=GAIN,
            refuted_if="a routed model significantly has the higher loss",
            judge=partial(_judge_losses, models=models, other=NARROW, most=0.0),
        )
        for name, statement, models in LOSSES
    ),
    Claim(
        name="as-good-as-dense",
        place="Paper B, future work",
        statement="Layers routed by LSH are as good as dense ones of the same total width.",
        rule=f"in one table and in four: validation loss at most {NEAR:g} nats above dense, {PAIRS}",
        refuted_if="a routed model's loss significantly exceeds dense's by more than the limit",
        judge=partial(_judge_losses, models=(LSH, LSH_4), other=DENSE, most=NEAR),
    ),
    Claim(
        name="as-good-as-top-k",
        place="beyond the papers",
        statement="A hash that knows nothing of the units chooses as well as their pre-activations do.",
        rule=f"in one table and in four: validation loss at most {NEAR:g} nats above top-k, {PAIRS}",
        refuted_if="a hash's loss significantly exceeds top-k's by more than the limit",
        judge=partial(_judge_losses, models=(LSH, LSH_4), other=TOP_K, most=NEAR),
    ),
    Claim(
        name="flops",
        place="beyond the papers",
        statement=f"With one unit in {ACTIVE} on, hash and tree save operations even when routing is counted; top-k, "
        "which computes every pre-activation, saves less than half.",
        rule=f"operations of the feed-forward layers for a token over dense, routing included: at most {CHEAP:g} for "
        f"LSH and the tree, at least {TOP_K_COSTS:g} for top-k, at every seed",
        refuted_if="some seed of LSH or of the tree costs more than its limit, or of top-k less",
        judge=lambda rows: every(
            *[
                within(range_of(share_of_dense(rows, model)), most=CHEAP, what=f"{model}:")
                for model in (LSH, LSH_4, TREE)
            ],
            within(range_of(share_of_dense(rows, TOP_K)), least=TOP_K_COSTS, what=f"{TOP_K}:"),
        ),
    ),
)


SEEDS = "Median over seeds; bars: least and greatest."
PARTS = {"units": "active_flops", "routing": "routing_flops", "all else": "other_flops"}


def _parts_frame(found: Rows) -> Frame:
    first = [found.where(model=model)[0] for model in MODELS if found.where(model=model)]
    parts = {part: [row[name] / 1e6 for row in first] for part, name in PARTS.items()}
    return {"model": [row["model"] for row in first], **parts, "parameters": [row["parameters"] for row in first]}


@styled
def plot_parts(frame: Frame) -> Figure:
    """A bar a model."""
    drawing = figure(6.4, 3.6)
    axes = drawing.subplots()
    names = [row[0] for row in rows(frame)]
    left = np.zeros(len(names))
    for part, colour in zip(PARTS, COLOURS, strict=False):
        values = np.asarray(frame[part], dtype=float)
        axes.barh(range(len(names)), values, left=left, color=colour, label=part, height=0.6)
        left += values
    list_axis(axes, names)
    axes.set_xlabel("million operations for a token")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


EXPERIMENT = Experiment(
    name="routed-transformer",
    paper="practice",
    place="Paper B, future work: LSH inside transformers",
    title="Feed-forward layers of a transformer, routed",
    summary="Decoders that learn the next character of tinyshakespeare, all alike but for their feed-forward layers: "
    f"dense with ReLU; of the same width with one unit in {ACTIVE} on, chosen by random hyperplanes in one table or "
    "in four (HyperplaneLSH), by a tree of learned hyperplanes, or by the largest pre-activations; and dense of "
    f"{ACTIVE} times fewer units. A bucket or a leaf stands for neighbouring units; the tree mixes all its leaves "
    "while it is trained and takes one when it is evaluated. At full size: 4 layers of width 128 with 512 units, 64 "
    "on. Operations are those of a forward pass for one token, in all feed-forward layers, routing included.",
    parameters=partial(characters.tasks, MODELS),
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "loss",
            "Validation loss while training",
            f"Mean cross-entropy of the next character. {SEEDS}",
            lambda found: curves(
                found.unfolded(step="at", loss="losses"),
                "{model}",
                "step",
                "loss",
                interval=range_of,
            ),
            curve_plot("step", "validation loss in nats"),
        ),
        Chart(
            "cost",
            "Quality and operations",
            f"Validation loss after the last step; operations of the feed-forward layers, routing included. {SEEDS}",
            lambda found: curves(
                Rows(row.with_values(loss=row["losses"][-1], megaflops=row["flops"] / 1000000.0) for row in found),
                "{model}",
                "megaflops",
                "loss",
                interval=range_of,
            ),
            curve_plot("million operations for a token, feed-forward", "validation loss in nats", log_x=10),
        ),
        Chart(
            "parts",
            "What a token costs",
            "Forward pass: units that are on, the choice of them, and attention and logits.",
            _parts_frame,
            plot_parts,
        ),
    ),
    order=20,
    unmet=characters.unmet,
)
