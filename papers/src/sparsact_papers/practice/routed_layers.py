"""Paper B's future work: mixtures of experts in a vision transformer and in a decoder, at equal active units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from statistics import stdev
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.charts import curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common import characters
from sparsact_papers.common.real_data import unmet_training
from sparsact_papers.data.files import cifar10_missing, load_cifar10
from sparsact_papers.experiment import Experiment, Parameter, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

if TYPE_CHECKING:
    from torch import nn

    from sparsact_papers.training import LabelledImages, Transformer, VisionTransformer

IMAGES, TEXT, LONG = "images", "text", "text-long"
DENSE, WIDE, TOP_K, TOP_2, BIASES = "dense", "dense, wide", "top-k", "top-2", "biases"
SWITCH, CHOICE, LSH, LEARNED, HASH = "Switch", "expert choice", "LSH", "learned LSH", "hash"
TREE, SCALING = "tree", "Scaling"
MODELS: Final = {
    IMAGES: (DENSE, WIDE, TOP_K, TOP_2, BIASES, SWITCH, CHOICE, LSH, LEARNED, HASH, TREE, SCALING),
    # Expert choice looks at later characters.
    TEXT: (DENSE, WIDE, TOP_K, TOP_2, BIASES, SWITCH, LSH, LEARNED, HASH, TREE, SCALING),
    LONG: (DENSE, TOP_K, TOP_2, SWITCH, LSH, HASH, SCALING),
}
LONGER: Final = 5  # times the steps of the others
N_HEADS, PATCH, SIZE, CLASSES = 4, 4, 32, 10
SIZES: Final[dict[Scale, dict[str, int]]] = {
    Scale.SMOKE: {"n_train": 64, "context": 16, "width": 16, "n_layers": 2, "active": 8, "batch": 4, "steps": 4},
    Scale.QUICK: {"n_train": 2000, "context": 32, "width": 32, "n_layers": 2, "active": 64, "batch": 16, "steps": 60},
    Scale.FULL: {
        "n_train": 50_000,
        "context": 64,
        "width": 48,
        "n_layers": 6,
        "active": 96,
        "batch": 32,
        "steps": 1000,
    },
}
WINDOWS: Final = {
    IMAGES: {Scale.SMOKE: 8, Scale.QUICK: 200, Scale.FULL: 10_000},
    TEXT: {Scale.SMOKE: 4, Scale.QUICK: 64, Scale.FULL: 512},
}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 10}
EVALUATIONS, APART = 2, 500  # least number of evaluations, most steps between them


def parameters(scale: Scale) -> Iterator[dict[str, Parameter]]:
    """Each model on images, then on text, one seed after the other."""
    for seed in range(SEEDS[scale]):
        for data, models in MODELS.items():
            windows = WINDOWS[IMAGES if data == IMAGES else TEXT][scale]
            sizes: dict[str, Parameter] = {**SIZES[scale], "windows": windows, "seed": seed}
            if data == LONG:
                sizes["steps"] = LONGER * SIZES[scale]["steps"]
            yield from ({"data": data, "model": model, **sizes} for model in models)


def measure(
    *,
    data: str,
    model: str,
    n_train: int,
    context: int,
    width: int,
    n_layers: int,
    active: int,
    batch: int,
    steps: int,
    windows: int,
    seed: int,
) -> dict[str, Any]:
    """Losses and accuracies while training, and operations of a feed-forward layer for a token."""
    import torch

    from sparsact_papers.training import CharacterText, Recipe, train
    from sparsact_papers.training.checkpoint import seeded

    examples: LabelledImages | CharacterText = images(n_train) if data == IMAGES else characters.text()
    with seeded(seed, torch.device("cpu")):
        made = network(data, model, width=width, n_layers=n_layers, active=active, context=context)
    recipe = Recipe(
        steps,
        batch,
        context,
        warmup=steps // 10,
        evaluate_every=max(min(steps // EVALUATIONS, APART), 1),
        windows=windows,
        seed=seed,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = train(made, examples, recipe, device=device)
    layer: Any = made.blocks[0]
    cost = layer.feed_forward.flops()
    return {
        "at": [row.step for row in rows],
        "losses": [row.loss for row in rows],
        "accuracies": [100 * row.accuracy for row in rows if row.accuracy is not None],
        "routing_flops": cost.routing,
        "active_flops": cost.active,
        "parameters": sum(parameter.numel() for parameter in made.parameters()),
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
    }


def training_step(
    data: str, model: str, *, n_train: int, batch: int, context: int, steps: int, **sizes: int
) -> Callable[[], None]:
    """A function that trains a model for one step more, as :func:`measure` does: its time is that of a step."""
    import torch

    from sparsact.layers import update_biases
    from sparsact_papers.training.train import training_loss

    examples = images(n_train) if data == IMAGES else characters.text()
    made = network(data, model, context=context, **sizes).train()
    optimizer, drawn = torch.optim.AdamW(made.parameters(), fused=True), torch.Generator().manual_seed(0)

    def step() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(training_loss(made, *examples.batch(batch, context, generator=drawn)))
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        if model == BIASES:
            update_biases(made)

    return step


def network(
    data: str, model: str, *, width: int, n_layers: int, active: int, context: int
) -> Transformer | VisionTransformer:
    """A vision transformer on patches of 4 x 4, or a decoder of characters."""
    from sparsact_papers.training import Transformer, VisionTransformer, feed_forward

    def layer(width: int, active: int) -> nn.Module:
        return feed_forward(model, width, active, n_ids=(SIZE // PATCH) ** 2 if data == IMAGES else vocabulary)

    if data == IMAGES:
        return VisionTransformer(SIZE, PATCH, CLASSES, width, n_layers, N_HEADS, active, layer)
    vocabulary = len(characters.text().characters)
    return Transformer(vocabulary, width, n_layers, N_HEADS, active, context, layer)


@cache
def images(n_train: int) -> LabelledImages:
    """The first images of the set for training, and all of its test images, read once a process."""
    import torch

    from sparsact_papers.training import LabelledImages

    data = load_cifar10(n_train=n_train)
    train = torch.from_numpy(data.train_images), torch.from_numpy(data.train_labels).long()
    return LabelledImages(*train, torch.from_numpy(data.test_images), torch.from_numpy(data.test_labels).long())


def gains(rows: Rows, data: str, one: str, other: str, least: int = 2) -> list[float]:
    """By how much a model is better than another after the last step, for each seed: points on images, nats on text."""
    of = rows.where(data=data)
    if data != IMAGES:
        return characters.gains(of, one, other, least)
    pairs = needed(of.where(model=one).paired(of.where(model=other), "seed"), f"a pair of {one} and {other}", least)
    return [row["accuracies"][-1] - beside["accuracies"][-1] for row, beside in pairs]


def operations(rows: Rows, data: str, model: str) -> int:
    """Operations of a feed-forward layer per token: its active units, and the choice of units."""
    one = rows.where(data=data, model=model)[0]
    return int(one["active_flops"] + one["routing_flops"])


def judge_gain(rows: Rows, data: str, models: tuple[str, ...], other: str) -> Verdict:
    """Whether each model is better than the other one."""
    verdicts = []
    for model in models:
        found = gains(rows, data, model, other)
        unit = "points" if data == IMAGES else "nats"
        costs = " against ".join(f"{operations(rows, data, name):,}" for name in (model, other))
        spread = f"{costs} operations a token; paired standard deviation {stdev(found):.3g}"
        what = f"{model} over {other}, {unit} ({spread}):"
        verdicts.append(within(mean_of(found), least=0.0, what=what))
    return every(*verdicts)


RULE: Final = (
    "fixed before the runs: the gain after the last step, {what}, in pairs of one seed; holds if the 95 % interval "
    "of the mean over seeds lies above 0 for every model named, fails if one lies below; the standard deviation of the "
    "pairs and the number of seeds that would decide are stated"
)
LOSS: Final = "validation loss in nats, the sign changed"
WHAT: Final = {IMAGES: "test accuracy in points", TEXT: LOSS, LONG: LOSS}
NAMES: Final = {IMAGES: IMAGES, TEXT: TEXT, LONG: f"text, trained {LONGER} times as long"}
LAST, SETTLED = 0.2, 1.0  # share of the steps in which a settled loss falls by so few percent
COMPARED: Final = (
    ("experts", "Mixtures of experts with learned gates are better than dense layers.", (TOP_2, BIASES, SWITCH), DENSE),
    ("choice", "Mixtures whose experts choose their tokens are better than dense layers.", (CHOICE,), DENSE),
    ("dsm", "Layers that keep the largest pre-activations (DSM) are better than dense ones.", (TOP_K,), DENSE),
    ("lsh", "Experts chosen by random hyperplanes are better than dense layers.", (LSH,), DENSE),
    ("hash", "Experts chosen by a table of places or characters are better than dense layers.", (HASH,), DENSE),
    ("tree", "Experts in a tree of learned hyperplanes are better than dense layers.", (TREE,), DENSE),
    ("scaling", "Scaling layers (one unit per block is on) are better than dense ones.", (SCALING,), DENSE),
    ("directions", "Hyperplanes that learn are better than random ones.", (LEARNED,), LSH),
    ("gates", "Learned gates with two experts are better than random hyperplanes.", (TOP_2,), LSH),
    ("units", "A DSM that chooses units one by one is better than two experts.", (TOP_K,), TOP_2),
)


def judge_settled(rows: Rows) -> Verdict:
    """Whether the loss of each model that is trained for long hardly falls in its last steps."""
    verdicts = []
    for model in MODELS[LONG]:
        rows_of = rows.where(data=LONG, model=model)
        before = [np.interp((1 - LAST) * row["at"][-1], row["at"], row["losses"]) for row in rows_of]
        falls = [100 * (loss / row["losses"][-1] - 1) for loss, row in zip(before, rows_of, strict=True)]
        fall = mean_of(needed(falls, f"training of {model} for {LONGER} times the steps", 2))
        verdicts.append(within(fall, most=SETTLED, what=f"{model}, percent:"))
    return every(*verdicts)


CLAIMS: Final = (
    *(
        Claim(
            name=f"{name}-{data}",
            place="Paper B, future work",
            statement=f"{statement[:-1]}, on {NAMES[data]}, at equal active units (their choice comes on top).",
            rule=RULE.format(what=WHAT[data]),
            refuted_if="the mean gain of a model is significantly below 0",
            judge=partial(judge_gain, data=data, models=trained, other=other),
        )
        for data in MODELS
        for name, statement, models, other in COMPARED
        if (trained := tuple(model for model in models if model in MODELS[data])) and other in MODELS[data]
    ),
    Claim(
        name="settled",
        statement=f"With {LONGER} times the steps the curves of the decoders have settled.",
        rule=f"fixed before the runs: by how many percent the validation loss falls in the last {100 * LAST:g} % of "
        f"the steps; holds if the 95 % interval of the mean over seeds lies below {SETTLED:g} for every model",
        refuted_if="the loss of a model falls by significantly more",
        judge=judge_settled,
    ),
)
SPREAD: Final = "Median over seeds; bars: least and greatest."
CURVES: Final = (
    (IMAGES, "accuracy", "accuracies", "Test accuracy on images", "test accuracy in %"),
    (TEXT, "loss", "losses", "Validation loss on text", "validation loss in nats"),
    (LONG, "long-loss", "losses", f"Validation loss on {NAMES[LONG]}", "validation loss in nats"),
)
ABSCISSAS: Final = (
    ("step", "training steps", "step", "A step has as many active units for each model but the wide dense one."),
    ("work", "operations", "million operations of a layer for a token, summed over steps", "Choosing is counted."),
)


def progress_frame(found: Rows, *, data: str, x: str, histories: str) -> Frame:
    """A model's curve from its first steps on: by steps, or by the operations of its feed-forward layers so far."""
    points = Rows(row for row in found.where(data=data).unfolded(step="at", value=histories) if row["step"])
    work = (row["step"] * (row["active_flops"] + row["routing_flops"]) / 1e6 for row in points)
    both = Rows(row.with_values(work=millions) for row, millions in zip(points, work, strict=True))
    return curves(both, "{model}", x, "value", interval=range_of)


def unmet() -> str | None:
    """Torch, the images or the text, where they are absent."""
    return unmet_training(cifar10_missing(), characters.unmet())


EXPERIMENT: Final = Experiment(
    name="routed-layers",
    paper="practice",
    place="Paper B, future work: routing in MoE vision transformers",
    title="Feed-forward layers with equal active units, in a vision transformer and in a decoder",
    summary="A vision transformer on patches of 4 x 4 of CIFAR-10, and a decoder of the characters of tinyshakespeare. "
    "All feed-forward layers have ReLU and as many active units for a token. Dense has no others (wide: four times as "
    "many, all on). The sparse ones have four times as many: top-k keeps the largest pre-activations (DSM); two of "
    "eight experts are chosen by a softmax gate with a balancing loss of weight 0.01 (top-2), by sigmoids with biases, "
    "by the experts (expert choice, on images only: it looks at later characters), by random hyperplanes in two tables "
    "(LSH), by hyperplanes that learn, or by a table of places, or of characters (hash). Switch takes one expert of "
    "four, and so does a tree of learned hyperplanes, which mixes all its leaves while it is trained; in Scaling a "
    "controller of low rank takes one unit of each four. At full size: 6 layers of width 48 with 96 units on, 1,000 "
    f"steps of 32 images or passages of 64 characters; some decoders are trained {LONGER} times as long too. "
    "AdamW, warm-up and cosine to a tenth, on a GPU of CUDA where there is one; images are flipped at random. The "
    "accuracy is that of the test images after "
    "the last step: nothing is stopped early or tuned on them. Top-k computes all pre-activations, so it does not save "
    "them.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=tuple(
        Chart(
            f"{measured}-{x}",
            f"{title} against {against}",
            f"{told} {SPREAD}",
            partial(progress_frame, data=data, x=x, histories=histories),
            curve_plot(label, unit),
        )
        for data, measured, histories, title, unit in CURVES
        for x, against, label, told in ABSCISSAS
    ),
    order=30,
    unmet=unmet,
)
