"""Small transformers on the characters of tinyshakespeare: sizes, text, and models that a seed fixes.

Torch is imported where it is used: an experiment can be listed without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from sparsact_papers.claims import needed
from sparsact_papers.common.real_data import absent, unmet_training
from sparsact_papers.results import Parameter, Rows, Scale

if TYPE_CHECKING:
    from sparsact_papers.training import CharacterText, Recipe, Transformer


N_HEADS, EVALUATIONS = 4, 10
LEARNING_RATE: Final = 2e-3
SIZES: Final[dict[Scale, dict[str, int]]] = {
    Scale.SMOKE: {"width": 16, "n_layers": 2, "hidden": 64, "context": 16, "batch": 4, "steps": 10, "windows": 4},
    Scale.QUICK: {"width": 48, "n_layers": 2, "hidden": 192, "context": 64, "batch": 8, "steps": 150, "windows": 32},
    Scale.FULL: {"width": 128, "n_layers": 4, "hidden": 512, "context": 128, "batch": 16, "steps": 1000, "windows": 64},
}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 3}


@cache
def text() -> CharacterText:
    """The text, read once a process; the last tenth of it is for validation."""
    from sparsact_papers.data.files import load_tinyshakespeare
    from sparsact_papers.training import CharacterText

    return CharacterText.of(load_tinyshakespeare().text)


def model(*, width: int, n_layers: int, hidden: int, context: int, seed: int) -> Transformer:
    """A transformer with ReLU, its parameters drawn from the seed."""
    import torch

    from sparsact_papers.training import Transformer
    from sparsact_papers.training.checkpoint import seeded

    with seeded(seed, torch.device("cpu")):
        return Transformer(len(text().characters), width, n_layers, N_HEADS, hidden, context)


def recipe(
    *, steps: int, batch: int, context: int, windows: int, seed: int, learning_rate: float = LEARNING_RATE
) -> Recipe:
    """How all of them are trained, evaluated ten times on the way."""
    from sparsact_papers.training import Recipe

    return Recipe(
        steps,
        batch,
        context,
        learning_rate=learning_rate,
        warmup=steps // 10,
        evaluate_every=max(steps // EVALUATIONS, 1),
        windows=windows,
        seed=seed,
    )


def unmet() -> str | None:
    """Torch or the text, where it is absent."""
    from sparsact_papers.data.files import TINYSHAKESPEARE

    return unmet_training(absent(TINYSHAKESPEARE))


def tasks(models: Sequence[str], scale: Scale) -> Iterator[dict[str, Parameter]]:
    """Each model, one seed after the other."""
    for seed in range(SEEDS[scale]):
        yield from ({"model": name, **chosen(scale, seed)} for name in models)


def chosen(scale: Scale, seed: int) -> dict[str, Parameter]:
    """The sizes of a scale and a seed, as parameters of a task."""
    return {**SIZES[scale], "seed": seed}


def gains(rows: Rows, one: str, other: str, least: int = 2) -> list[float]:
    """By how many nats the last validation loss of a model is below another's, for each seed."""
    pairs = needed(rows.where(model=one).paired(rows.where(model=other), "seed"), f"a pair of {one} and {other}", least)
    return [beside["losses"][-1] - row["losses"][-1] for row, beside in pairs]
