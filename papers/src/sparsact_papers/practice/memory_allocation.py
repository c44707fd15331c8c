"""Mixtures of experts, memories and both in a decoder, at equal operations, active and inactive parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isqrt, log2
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.charts import curve_plot, curves, joined, level
from sparsact_papers.claims import Claim, Outcome, Verdict, every, within
from sparsact_papers.common import characters
from sparsact_papers.experiment import Experiment, Parameter, Rows, Scale
from sparsact_papers.intervals import confidence, mean_of, tail

if TYPE_CHECKING:
    from torch import nn

    from sparsact_papers.training import Transformer

N_GRAMS, KEYS = "n-grams", "product keys"
DENSE, EXPERTS = "dense", "experts"
QUARTER, HALF, THREE_QUARTERS, ALONE = (f"{N_GRAMS}, {share:g}" for share in (0.25, 0.5, 0.75, 1))
HALF_KEYS, KEYS_ALONE = f"{KEYS}, 0.5", f"{KEYS}, 1"
MIXED: Final = (QUARTER, HALF, THREE_QUARTERS)
# The kind of memory and its share of the inactive parameters; dense has no inactive ones.
MODELS: Final[Mapping[str, tuple[str, float]]] = {
    DENSE: ("", 1.0),
    EXPERTS: ("", 0.0),
    QUARTER: (N_GRAMS, 0.25),
    HALF: (N_GRAMS, 0.5),
    THREE_QUARTERS: (N_GRAMS, 0.75),
    ALONE: (N_GRAMS, 1.0),
    HALF_KEYS: (KEYS, 0.5),
    KEYS_ALONE: (KEYS, 1.0),
}
ON, OFF = 2, 16  # experts of a layer for a token, and others, where no memory takes their place
PLACE: Final = 1  # the layer beside which the memory lies: the second, as in Engram
HEADS, ROWS_OF_HEAD = 2, 4  # of product keys
SIZES: Final[dict[Scale, dict[str, int]]] = {
    Scale.SMOKE: {"width": 16, "n_layers": 2, "active": 32, "context": 16, "batch": 4, "steps": 10, "windows": 4},
    Scale.QUICK: {"width": 32, "n_layers": 2, "active": 64, "context": 32, "batch": 8, "steps": 60, "windows": 32},
    Scale.FULL: {"width": 64, "n_layers": 4, "active": 128, "context": 64, "batch": 16, "steps": 400, "windows": 256},
}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 10}
TUNED_ON: Final = 10  # the seed on which rates are compared; it decides no claim
LEAST_RATE: Final = 2e-3
# The rate of the least validation loss on that seed: doubled, from the least one on, until the loss rises.
RATES: Final = {model: 8e-3 if kind == N_GRAMS else 4e-3 for model, (kind, _) in MODELS.items()} | {QUARTER: 16e-3}


def parameters(scale: Scale) -> Iterator[dict[str, Parameter]]:
    """At full size first each model at each rate, on a seed of their own; then all models, one seed after the other."""
    sizes: dict[str, Parameter] = {**SIZES[scale]}
    if scale is Scale.FULL:
        for model, best in RATES.items():
            rates = (LEAST_RATE * 2**i for i in range(round(log2(best / LEAST_RATE)) + 2))
            yield from ({"model": model, **sizes, "learning_rate": rate, "seed": TUNED_ON} for rate in rates)
    for seed in range(SEEDS[scale]):
        yield from ({"model": model, **sizes, "learning_rate": RATES[model], "seed": seed} for model in MODELS)


def measure(
    *,
    model: str,
    width: int,
    n_layers: int,
    active: int,
    context: int,
    batch: int,
    steps: int,
    windows: int,
    learning_rate: float,
    seed: int,
) -> dict[str, Any]:
    """Losses while training, what the feed-forward layers and the memory cost, and tokens a second of one core."""
    from sparsact_papers.training import train

    made = Sizes.of(model, width=width, n_layers=n_layers, active=active, context=context).network(seed)
    recipe = characters.recipe(
        steps=steps, batch=batch, context=context, windows=windows, seed=seed, learning_rate=learning_rate
    )
    start = process_time()
    rows = train(made, characters.text(), recipe)
    seconds = process_time() - start
    return {
        "at": [row.step for row in rows],
        "losses": [row.loss for row in rows],
        **costs(made),
        "tokens_per_second": batch * context * steps / seconds,
    }


@dataclass(frozen=True)
class Sizes:
    """What a model is made of: experts of ``hidden`` units in each layer, and ``n_rows`` of a memory."""

    model: str
    width: int
    n_layers: int
    context: int
    hidden: int
    n_experts: int
    n_rows: int = 0

    @classmethod
    def of(cls, model: str, *, width: int, n_layers: int, active: int, context: int) -> Sizes:
        """Sizes at which a token costs as many operations as with experts alone, and as many parameters are inactive.

        Experts have fewer units where a memory or its gate costs operations, and a dense layer more, for it needs no
        router. All of them are on where no experts are inactive.
        """
        kind, share = MODELS[model]
        alone = cls(EXPERTS, width, n_layers, context, active // ON, ON + OFF)
        if model == EXPERTS:
            return alone
        wanted = costs(alone.network(0, "meta"))
        inactive = wanted["inactive_parameters"]
        n_rows = inactive // width if kind else 0
        found = cls(model, width, n_layers, context, active // ON, ON, n_rows)
        for _ in range(3):  # the router's cost and the number of experts depend on each other
            more = wanted["flops"] - costs(found.network(0, "meta"))["flops"]
            hidden = found.hidden + round(more / (4 * width * ON * n_layers))
            of_expert = n_layers * (2 * width * hidden + hidden + width)
            n_off = round((1 - share) * inactive / of_expert)
            n_rows = (inactive - n_off * of_expert) // width if kind else 0
            found = cls(model, width, n_layers, context, hidden, ON + n_off, n_rows)
        return found

    def network(self, seed: int, device: str = "cpu") -> Transformer:
        """The decoder, its parameters drawn from the seed."""
        import torch

        from sparsact.layers import HashMemory, MixtureOfExperts, ProductKeyMemory
        from sparsact_papers.training import FeedForward, Transformer, WithMemory
        from sparsact_papers.training.checkpoint import seeded

        def layer(width: int, hidden: int) -> nn.Module:
            if self.n_experts == ON:
                return FeedForward(width, ON * hidden)
            return MixtureOfExperts(width, hidden, n_experts=self.n_experts, n_active=ON, activation="relu", bias=True)

        kind, _ = MODELS[self.model]
        vocabulary = len(characters.text().characters)
        with seeded(seed, torch.device("cpu")), torch.device(device):
            made = Transformer(
                vocabulary, self.width, self.n_layers, characters.N_HEADS, self.hidden, self.context, layer
            )
            block: Any = made.blocks[PLACE]
            if kind == N_GRAMS:
                memory = HashMemory(self.n_rows, self.width, random_state=seed, sparse=False)
                block.feed_forward = WithMemory(block.feed_forward, memory)
            elif kind == KEYS:
                keyed = ProductKeyMemory(
                    isqrt(self.n_rows), self.width, ROWS_OF_HEAD, HEADS, batch_norm=True, sparse=False
                )
                block.feed_forward = WithMemory(block.feed_forward, keyed)
        return made


def costs(made: Transformer) -> dict[str, Any]:
    """Operations of feed-forward layers and memory for a token, parameters, and the memory's share of inactive ones."""
    from sparsact.layers import HashMemory, MixtureOfExperts
    from sparsact.layers.memory import Memory

    layers: list[Any] = [block.feed_forward for block in made.blocks]
    experts = rows = 0
    for module in made.modules():
        if isinstance(module, MixtureOfExperts):
            of_one = sum(p[0].numel() for p in module.parameters(recurse=False))
            experts += (module.n_experts - ON) * of_one
        elif isinstance(module, Memory):
            read = 4 if isinstance(module, HashMemory) else HEADS * ROWS_OF_HEAD
            rows += (len(module.values) - read) * module.values.shape[1]
    total = sum(parameter.numel() for parameter in made.parameters())
    return {
        "flops": sum(layer.flops().total for layer in layers),
        "active_parameters": total - experts - rows,
        "inactive_parameters": experts + rows,
        "memory_share": rows / (experts + rows) if rows else 0.0,
    }


def deciding(rows: Rows) -> Rows:
    """Rows of the seeds on which nothing was tuned."""
    return Rows(row for row in rows if row["seed"] != TUNED_ON)


def judge_some(rows: Rows, models: tuple[str, ...], others: tuple[str, ...]) -> Verdict:
    """Whether one of the models is better than each of the others, by intervals that share the error among models."""
    error = 2 * max(tail() for _ in others) / len(models)  # each of the others is one more interval that refutes
    seeds = deciding(rows)
    verdicts = []
    with confidence(1 - error):
        for model in models:
            found = {other: mean_of(characters.gains(seeds, model, other)) for other in others}
            verdicts.append(every(*(within(found[o], least=0.0, what=f"{model} over {o}, nats:") for o in others)))
    outcomes = {verdict.outcome for verdict in verdicts}
    outcome = (
        Outcome.HOLDS if Outcome.HOLDS in outcomes else outcomes.pop() if len(outcomes) == 1 else Outcome.UNDECIDED
    )
    return Verdict(outcome, "; ".join(verdict.measured for verdict in verdicts))


COMPARED: Final = (
    (
        "mixed",
        "Experts with a memory of n-grams beside them are better than experts alone, for some share of memory.",
        MIXED,
        (EXPERTS,),
    ),
    (
        "u-curve",
        "Some share between is better than both ends, experts alone and memory alone.",
        MIXED,
        (EXPERTS, ALONE),
    ),
    (
        "quarter",
        "A quarter of memory is better than experts alone and than half, three quarters and memory alone.",
        (QUARTER,),
        (EXPERTS, HALF, THREE_QUARTERS, ALONE),
    ),
    ("experts", "Mixtures of experts are better than dense layers.", (EXPERTS,), (DENSE,)),
    ("n-grams", "A dense layer with a memory of n-grams is better than one without.", (ALONE,), (DENSE,)),
    ("keys", "A dense layer with product keys is better than one without.", (KEYS_ALONE,), (DENSE,)),
    ("mixed-keys", "Experts with product keys, half of each, are better than experts alone.", (HALF_KEYS,), (EXPERTS,)),
    ("by-id", "Without experts, a memory of n-grams is better than product keys.", (ALONE,), (KEYS_ALONE,)),
    ("by-id-mixed", "Beside experts, half n-grams are better than half product keys.", (HALF,), (HALF_KEYS,)),
)
RULE: Final = (
    "fixed before the runs: the validation loss after the last step, in pairs of one seed, on seeds that chose no "
    "rate; holds if the interval of the mean gain lies above 0 {what}, fails if {fails}. The intervals have "
    "{level}: a claim that is false holds with a probability of at most 2.5 % (one-sided, Bonferroni)"
)


def _claim(name: str, statement: str, models: tuple[str, ...], others: tuple[str, ...]) -> Claim:
    each = "over each of the others" if len(others) > 1 else f"over {others[0]}"
    n = len(models)
    some, none = ("for one of the shares", "for every share one lies") if n > 1 else ("", "one lies")
    fails = f"{none} below 0"
    return Claim(
        name=name,
        place="Engram, allocation of sparsity" if name in ("mixed", "u-curve", "quarter") else "beyond the paper",
        statement=f"{statement[:-1]}, at equal operations and parameters.",
        rule=RULE.format(what=f"{each} {some}".strip(), fails=fails, level=f"{100 - 5 / n:.4g} %"),
        refuted_if=f"the mean gain is significantly below 0{' for every share' if n > 1 else ''}",
        judge=partial(judge_some, models=models, others=others),
    )


def gain_frame(found: Rows) -> Frame:
    """Gain over experts alone by the share of memory, for both kinds, and the dense layer's."""
    of = deciding(found)
    points = Rows(
        row.with_values(gain=beside["losses"][-1] - row["losses"][-1])
        for row, beside in of.paired(of.where(model=EXPERTS), "seed")
    )
    frames = []
    for kind in (N_GRAMS, KEYS):
        of_kind = Rows(row for row in points if row["model"] == EXPERTS or MODELS[row["model"]][0] == kind)
        frames.append(curves(of_kind, kind, "memory_share", "gain", interval=mean_of))
    dense = points.where(model=DENSE)
    both = joined(*frames)
    return joined(both, level(DENSE, mean_of(dense.column("gain")), both)) if dense else both


def rate_frame(found: Rows) -> Frame:
    """Last validation loss of each model by learning rate, on the seed that serves only this."""
    return curves(found.where(seed=TUNED_ON), "{model}", "learning_rate", lambda row: row["losses"][-1], "loss")


EXPERIMENT: Final = Experiment(
    name="memory-allocation",
    paper="practice",
    place="Engram, allocation of sparsity (arXiv 2601.07372)",
    title="Experts, memories and both in a decoder, at equal operations and parameters",
    summary="A decoder of the characters of tinyshakespeare. Each layer has experts with ReLU, two of them on, chosen "
    "by a softmax gate with a balancing loss of weight 0.01; a memory lies beside the second layer: HashMemory of two "
    "and three characters with a gate, or ProductKeyMemory (two heads of four rows, queries normalised). Of the "
    "parameters that a token does not use, a share belongs to the memory, the rest to experts, whose number and units "
    "are chosen such that all models cost as many operations a token and have as many active and inactive parameters; "
    "without inactive experts both are one dense layer, and dense has no inactive parameters at all. At full size: 4 "
    "layers of width 64, 2 of 18 experts of 64 units without a memory, 400 steps of 16 passages of 64 characters. "
    "AdamW, warm-up and cosine to a tenth; the table has five times the rate and no decay, as in Engram, and was not "
    "tuned. The rate of the rest was doubled from 0.002 on until the loss rose, for each model alone, on a seed that "
    "decides nothing. Intervals are over seeds, which set parameters, hashes and batches; there is one text.",
    parameters=parameters,
    measure=measure,
    claims=tuple(_claim(*one) for one in COMPARED),
    charts=(
        Chart(
            "share",
            "Gain over experts alone by the share of memory",
            "Mean over seeds of the paired difference; bars: its 95 % interval.",
            gain_frame,
            curve_plot("share of memory in the inactive parameters", "gain in nats", lines=(DENSE,)),
        ),
        Chart(
            "rate",
            "Validation loss by learning rate",
            "On the seed on which rates were chosen.",
            rate_frame,
            curve_plot("learning rate", "validation loss in nats", log=(10, 0)),
        ),
    ),
    order=40,
    unmet=characters.unmet,
)
