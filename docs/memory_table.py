"""The table of experts, memories and both at equal cost, and its figures for the prose, computed from the kept rows."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from routed_table import write_list
from verdict_table import findings

from sparsact_papers.common import characters
from sparsact_papers.experiments import Rows
from sparsact_papers.intervals import mean_of
from sparsact_papers.practice.memory_allocation import (
    ALONE,
    DENSE,
    EXPERTS,
    HALF,
    HALF_KEYS,
    KEYS_ALONE,
    MODELS,
    QUARTER,
    deciding,
)

HEAD = (
    "model, with the memory's share",
    "loss",
    "nats below experts",
    "tokens a second",
)
GAINS = {
    "quarter gain": (QUARTER, EXPERTS),
    "half gain": (HALF, EXPERTS),
    "alone gain": (ALONE, EXPERTS),
    "experts gain": (EXPERTS, DENSE),
    "keys gain": (KEYS_ALONE, DENSE),
    "mixed keys gain": (HALF_KEYS, EXPERTS),
}


def rows() -> Rows:
    """The kept rows of the experiment that decide, without the tuning seed's."""
    (found,) = (one for one in findings() if one.experiment.name == "memory-allocation")
    return deciding(found.rows)


def figures() -> dict[str, str]:
    """Seeds of all models, and gains over others in nats, by the names that pages write between bars."""
    n_seeds = min(len(rows().where(model=model)) for model in MODELS)
    gains = {name: str(mean_of(characters.gains(rows(), *models))) for name, models in GAINS.items()}
    return {"memory seeds": str(n_seeds), **gains}


def memory_table(path: Path) -> None:
    """Write each model's loss and gain, and tokens a second of CPU time: ``memories.rst`` includes it."""
    write_list(path, [HEAD, *(_line(rows(), model) for model in MODELS)])


def _line(found: Rows, model: str) -> tuple[str, ...]:
    of = found.where(model=model)
    loss = mean_of([row["losses"][-1] for row in of])
    gain = "–" if model == EXPERTS else str(mean_of(characters.gains(found, model, EXPERTS)))
    return model, f"{loss.estimate:.3f}", gain, f"{median(of.column('tokens_per_second')):,.0f}"
