"""Activation sparsity from nothing: a ReLU transformer on characters, plain, with L1, and with only k units kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sparsact_papers.charts import Chart, Frame, curve_plot, curves, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common import characters
from sparsact_papers.experiment import Experiment, Row, Rows
from sparsact_papers.intervals import mean_of, range_of

if TYPE_CHECKING:
    from sparsact_papers.training import Transformer
    from sparsact_papers.training.penalties import SparsityRegularizer


def measure(
    *, model: str, width: int, n_layers: int, hidden: int, context: int, batch: int, steps: int, windows: int, seed: int
) -> dict[str, Any]:
    """Loss in nats, density and dead units of each layer while training; the same at the end without top-k."""
    from sparsact_papers.training import evaluation, train

    made = characters.model(width=width, n_layers=n_layers, hidden=hidden, context=context, seed=seed)
    recipe = characters.recipe(steps=steps, batch=batch, context=context, windows=windows, seed=seed)
    blocks = made.feed_forward_blocks()
    rows = train(made, characters.text(), recipe, blocks=blocks, penalty=_inducement(model, made, hidden))
    released = evaluation(made, characters.text(), recipe, blocks=blocks, step=steps)
    return {
        "at": [row.step for row in rows],
        "losses": [row.loss for row in rows],
        "densities": [row.density for row in rows],
        "dead": [row.dead for row in rows],
        "rare": [row.rare for row in rows],
        "n_inputs": released.n_inputs,
        "released_loss": released.loss,
        "released_density": released.density,
    }


def _inducement(name: str, made: Transformer, hidden: int) -> SparsityRegularizer | None:
    from sparsact_papers.training import ActivationPenalty, TopKTraining

    blocks = made.feed_forward_blocks()
    if name in STRENGTHS:
        return ActivationPenalty(made, blocks, STRENGTHS[name])
    return TopKTraining(made, blocks, hidden // KEPT) if name == TOP_K else None


PLAIN, WEAK, STRONG, TOP_K = "plain", "L1 x 0.1", "L1 x 0.3", "top-k"
STRENGTHS: Final = {WEAK: 0.1, STRONG: 0.3}
MODELS: Final = (PLAIN, WEAK, STRONG, TOP_K)
KEPT: Final = 16  # top-k keeps one unit in 16
FEW: Final = 0.03  # density of trained transformers that paper A begins with
HALF, NEAR, ALIVE = 0.5, 0.05, 0.05


def density(row: Row, at: int = -1) -> float:
    """Share of units that are on, a mean over layers, at one of the evaluations."""
    layers = row["densities"][at]
    return float(sum(layers) / len(layers))


def loss(row: Row) -> float:
    """Validation loss after the last step."""
    return float(row["losses"][-1])


def dead(row: Row) -> float:
    """Share of units that were off for every input of the last evaluation."""
    return float(sum(row["dead"][-1]) / (row["hidden"] * row["n_layers"]))


def paired(rows: Rows, one: str, other: str) -> list[tuple[Row, Row]]:
    """Rows of two models, for each seed that has both."""
    return needed(rows.where(model=one).paired(rows.where(model=other), "seed"), f"a pair of {one} and {other}")


def map_of(rows: Rows, model: str, value: Callable[[Row], float]) -> list[float]:
    """A value of each row of a model."""
    return [value(row) for row in needed(rows.where(model=model), model)]


def _density(rows: Rows, model: str, most: float) -> Verdict:
    shares = [density(one) / density(other) for one, other in paired(rows, model, PLAIN)]
    return within(mean_of(shares), most=most, what=f"density, {model} over plain:")


def _loss(rows: Rows, model: str) -> Verdict:
    losses = [loss(one) - loss(other) for one, other in paired(rows, model, PLAIN)]
    return within(mean_of(losses), most=NEAR, what=f"loss, {model} minus plain, nats:")


PAIRS: Final = "by 95 % intervals of means over seeds, in pairs of one seed"
CLAIMS: Final = (
    Claim(
        name="falls",
        place="Paper A, Section 1",
        statement="Density falls while a ReLU transformer is trained, though nothing in the loss rewards it.",
        rule="density (a mean over layers) after the last step over that before the first: holds if its 95 % interval "
        "over seeds lies below 1",
        refuted_if="density significantly rises",
        judge=lambda rows: within(
            mean_of([density(row) / density(row, 0) for row in needed(rows.where(model=PLAIN), "the plain model")]),
            most=1,
            what="density after training over before:",
        ),
    ),
    Claim(
        name="few",
        place="Paper A, Section 1",
        statement="Training alone comes to 3 % of units that are on.",
        printed="3 % at the least, of large transformers",
        rule="holds if the 95 % interval of the last density over seeds lies below 3 %",
        refuted_if="the last density is significantly above 3 %",
        judge=lambda rows: within(mean_of(map_of(rows, PLAIN, density)), most=FEW, what="density:"),
    ),
    Claim(
        name="l1",
        place="beyond the papers",
        statement="L1 on activations at least halves the density, at a validation loss as good.",
        rule=f"at both strengths: density at most {HALF:g} of plain's, loss at most {NEAR:g} nats more, {PAIRS}",
        refuted_if="at some strength the density significantly exceeds the limit, or the loss does",
        judge=lambda rows: every(
            *(part for model in STRENGTHS for part in (_density(rows, model, HALF), _loss(rows, model)))
        ),
    ),
    Claim(
        name="stronger",
        place="beyond the papers",
        statement="A stronger penalty lowers density further.",
        rule=f"holds if density at 0.3 over that at 0.1 lies below 1, {PAIRS}",
        refuted_if="the stronger penalty significantly has the higher density",
        judge=lambda rows: within(
            mean_of([density(one) / density(other) for one, other in paired(rows, STRONG, WEAK)]),
            most=1,
            what=f"density, {STRONG} over {WEAK}:",
        ),
    ),
    Claim(
        name="top-k",
        place="beyond the papers",
        statement=f"A transformer that keeps one unit in {KEPT} while it is trained is as good as one that keeps all.",
        rule=f"holds if its validation loss is at most {NEAR:g} nats above plain's, {PAIRS}",
        refuted_if="its loss significantly exceeds plain's by more than the limit",
        judge=lambda rows: _loss(rows, TOP_K),
    ),
    Claim(
        name="released",
        place="beyond the papers",
        statement="A transformer that was trained with top-k is as good when it uses all of its units.",
        rule=f"holds if the validation loss with all units is at most {NEAR:g} nats above that with the units kept, "
        "by the 95 % interval of the mean over seeds",
        refuted_if="the loss with all units significantly exceeds that with the units kept by more than the limit",
        judge=lambda rows: within(
            mean_of([row["released_loss"] - loss(row) for row in needed(rows.where(model=TOP_K), TOP_K)]),
            most=NEAR,
            what="loss, all units kept minus k kept, nats:",
        ),
    ),
    Claim(
        name="alive",
        place="beyond the papers",
        statement="Units that are off are not dead: others of the inputs switch them on.",
        rule=f"holds if at most {100 * ALIVE:g} % of the units of each model are off for all inputs of the last "
        "evaluation, by the 95 % interval of the mean over seeds",
        refuted_if="some model significantly has a larger share of dead units",
        judge=lambda rows: every(
            *(within(mean_of(map_of(rows, model, dead)), most=ALIVE, what=f"{model}:") for model in MODELS)
        ),
    ),
)


SEEDS: Final = "Median over seeds; bars: least and greatest."


def histories(found: Rows) -> Rows:
    """A row for each evaluation and layer: its ``step``, ``layer``, ``loss``, ``density``, and shares of units."""
    return Rows(
        row.with_values(
            step=step,
            layer=f"layer {layer + 1}",
            loss=row["losses"][i],
            density=row["densities"][i][layer],
            **{name: row[name][i][layer] / row["hidden"] for name in ("dead", "rare")},
        )
        for row in found
        for i, step in enumerate(row["at"])
        for layer in range(row["n_layers"])
    )


def _density_frame(found: Rows) -> Frame:
    rows = histories(found)
    return panelled(
        {model: curves(rows.where(model=model), "{layer}", "step", "density", interval=range_of) for model in MODELS}
    )


def _units_frame(found: Rows) -> Frame:
    rows = Rows(_mean_over_layers(row, i) for row in found for i in range(len(row["at"])))
    kinds = {"dead": "off for all", "rare": "on for less than 1 in 1000"}
    return panelled(
        {label: curves(rows, "{model}", "step", kind, "share", interval=range_of) for kind, label in kinds.items()}
    )


def _mean_over_layers(row: Row, i: int) -> Row:
    units = row["hidden"] * row["n_layers"]
    return row.with_values(step=row["at"][i], **{name: sum(row[name][i]) / units for name in ("dead", "rare")})


EXPERIMENT: Final = Experiment(
    name="induced-sparsity",
    paper="practice",
    place="Paper A, Section 1: sparsity of trained transformers",
    title="Sparse activations, trained from nothing",
    summary="Decoders with ReLU feed-forward layers learn the next character of tinyshakespeare by AdamW, its last "
    "tenth kept for validation: plain; with the mean absolute activation of each layer added to the loss, times 0.1 "
    f"or 0.3; and with only the largest 1/{KEPT} of each layer's activations kept. At full size: 4 layers of width "
    "128 with 512 units, passages of 128 characters, 16 an update, 1000 updates. A unit is dead if it is off for "
    "every character of the evaluation, and rarely active if it is on for less than one in a thousand. Models of one "
    "seed start from the same parameters and see the same passages.",
    parameters=partial(characters.tasks, MODELS),
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "density",
            "Units that are on while training",
            f"Share of the units of each layer that are on, a mean over characters of the validation text. {SEEDS}",
            _density_frame,
            panel_plot("step", "density", log=(0, 10)),
        ),
        Chart(
            "loss",
            "Validation loss while training",
            f"Mean cross-entropy of the next character, without the penalty. {SEEDS}",
            lambda found: curves(histories(found).where(layer="layer 1"), "{model}", "step", "loss", interval=range_of),
            curve_plot("step", "validation loss in nats"),
        ),
        Chart(
            "units",
            "Dead units and rarely active ones",
            f"Shares of all units, counted over the characters of one evaluation. {SEEDS}",
            _units_frame,
            panel_plot("step", "share of units"),
        ),
    ),
    order=10,
    unmet=characters.unmet,
)
