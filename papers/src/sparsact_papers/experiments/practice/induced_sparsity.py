"""Activation sparsity from nothing: a ReLU transformer on characters, plain, with L1, and with only k units kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sparsact_papers.experiments import Experiment, Scale, characters
from sparsact_papers.experiments.practice.induced_sparsity_claims import CLAIMS, KEPT, MODELS, STRENGTHS, TOP_K
from sparsact_papers.experiments.task import Parameter

if TYPE_CHECKING:
    from sparsact.inference.training import Inducement
    from sparsact_papers.training import Transformer


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


def _inducement(name: str, made: Transformer, hidden: int) -> Inducement | None:
    from sparsact.inference.training import ActivationPenalty, TopKTraining

    blocks = made.feed_forward_blocks()
    if name in STRENGTHS:
        return ActivationPenalty(made, blocks, STRENGTHS[name])
    return TopKTraining(made, blocks, hidden // KEPT) if name == TOP_K else None


EXPERIMENT = Experiment(
    name="induced-sparsity",
    paper="practice",
    place="Paper A, Section 1: sparsity of trained transformers",
    title="Sparse activations, trained from nothing",
    summary=(
        "Decoders with ReLU feed-forward layers learn the next character of tinyshakespeare by AdamW, its last tenth "
        "kept for validation: plain; with the mean absolute activation of each layer added to the loss, times 0.1 or "
        f"0.3; and with only the largest 1/{KEPT} of each layer's activations kept. At full size: 4 layers of width "
        "128 with 512 units, passages of 128 characters, 16 an update, 1000 updates. A unit is dead if it is off for "
        "every character of the evaluation, and rarely active if it is on for less than one in a thousand. Models of "
        "one seed start from the same parameters and see the same passages."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    order=10,
    unmet=characters.unmet,
)
