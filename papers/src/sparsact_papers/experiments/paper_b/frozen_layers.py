"""Figures 1a, 2a, 3, 4 and Table 1: a frozen random layer, of which all or some units are on, under a learned one."""

from __future__ import annotations

from collections.abc import Iterator

from sparsact_papers.experiments import Experiment, Scale
from sparsact_papers.experiments.paper_b.frozen_bars import BARS
from sparsact_papers.experiments.paper_b.frozen_claims import CLAIMS
from sparsact_papers.experiments.paper_b.frozen_models import MODELS, TARGETS, measure
from sparsact_papers.experiments.task import Parameter

Parameters = dict[str, Parameter]

SEEDS = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 5}
ACTIVE = {Scale.SMOKE: (8, 16), Scale.QUICK: (32, 128), Scale.FULL: (256, 512, 1024)}
TABLE = {Scale.SMOKE: (), Scale.QUICK: (), Scale.FULL: (2048, 4096)}  # beside 1024
WIDEST = {Scale.SMOKE: 64, Scale.QUICK: 256, Scale.FULL: 2048}  # that is solved in closed form
SAMPLE: dict[Scale, Parameters] = {
    Scale.SMOKE: {"n_train": 512, "n_test": 256},
    Scale.QUICK: {"n_train": 1 << 13, "n_test": 1 << 12},
    Scale.FULL: {"n_train": 1 << 16, "n_test": 1 << 14},
}
TRAINED: dict[Scale, Parameters] = {
    Scale.SMOKE: {"epochs": 2, "learning_rate": 1e-3},
    Scale.QUICK: {"epochs": 40, "learning_rate": 3e-4},
    Scale.FULL: {"epochs": 50, "learning_rate": 1e-5},
}
RMSPROP: Parameters = {"optimiser": "rmsprop", "batch_size": 32, "rho": 0.9, "epsilon": 1e-7, "intercept": True}
RIDGE: Parameters = {"optimiser": "ridge", "alpha": 1e-9, "intercept": True}
IN_TABLE = ("dense-linear", "dense-relu", "dsm-50", "dsm-25")


def parameters(scale: Scale) -> Iterator[Parameters]:
    """A task for each seed, target, model, number of active units and way to find the top layer.

    What takes longest comes last: the wide layers of Table 1.
    """
    for seed in range(SEEDS[scale]):
        for target, model, active in _grid(ACTIVE[scale]):
            yield _trained(scale, seed, target, model, active)
        for target in TARGETS:
            for model, active in _layers(scale, target):
                where: Parameters = {"target": target, "model": model, "active": active, "seed": seed}
                yield {**where, **SAMPLE[scale], **RIDGE}
    for active in TABLE[scale]:
        for seed in range(SEEDS[scale]):
            for target in ("polynomial", "hypercube"):
                for model in IN_TABLE:
                    yield _trained(scale, seed, target, model, active)


def _trained(scale: Scale, seed: int, target: str, model: str, active: int) -> Parameters:
    where: Parameters = {"target": target, "model": model, "active": active, "seed": seed}
    return {**where, **SAMPLE[scale], **RMSPROP, **TRAINED[scale]}


def _grid(widths: tuple[int, ...]) -> Iterator[tuple[str, str, int]]:
    """What is trained."""
    for target in TARGETS:
        models = IN_TABLE if target == "projected" else tuple(MODELS)
        yield from ((target, model, active) for model in models for active in widths)


def _layers(scale: Scale, target: str) -> Iterator[tuple[str, int]]:
    """What is solved: all up to a total width, dense layers also of that width, hashed ones of half of it."""
    for name, model in MODELS.items():
        if target == "projected" and name not in IN_TABLE:
            continue
        wider = (WIDEST[scale],) if name.startswith("dense-relu") else ()
        most = WIDEST[scale] // 2 if model.hashed else WIDEST[scale]
        yield from ((name, active) for active in (*ACTIVE[scale], *wider) if active <= most * model.share)


EXPERIMENT = Experiment(
    name="frozen-layers",
    paper="B",
    place="Figures 1a, 2a, 3, 4 and Table 1",
    title="Dense, sparse and randomly hashed layers over a frozen bottom layer",
    summary=(
        "Targets on the cube [-1, 1]^n, drawn uniformly: a polynomial of degree 4 in n = 8 variables, a function of "
        "the hypercube's corners (n = 8), and p(Ax) with n = 64 and k = 8. The bottom layer is Glorot-uniform and "
        "frozen. DSM keeps the largest pre-activations by value and passes them on unchanged; a random hash keeps "
        "units whatever the input. Chosen where the paper is silent: batches of 32, no biases below, an intercept "
        "above from 0, Glorot-uniform top weights, RMSProp with rho .9 and epsilon 1e-7 (rate 1e-5, 50 epochs). "
        "The closed form is ridge regression with a penalty of 1e-9 of the mean square of a unit: the best that a top "
        "layer can do. Layers of one width and seed have the same weights; all comparisons are within a seed."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(*CLAIMS, *BARS),
    order=20,
)
