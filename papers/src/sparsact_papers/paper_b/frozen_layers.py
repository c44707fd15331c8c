"""Figures 1a, 2a, 3, 4 and Table 1: a frozen random layer, all or some of its units on, under a learned one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Final

from sparsact_papers.charts import Chart, Frame, curve_frame, curve_plot, curves, joined
from sparsact_papers.experiment import Experiment, Parameter, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of
from sparsact_papers.paper_b.frozen_claims import BARS, CLAIMS, PRINTED
from sparsact_papers.paper_b.frozen_models import MODELS, TARGETS, measure

Parameters = dict[str, Parameter]

SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 5}
FIGURE_3_SEEDS: Final = {**SEEDS, Scale.FULL: 20}  # of what is trained: five leave its claims undecided
ACTIVE: Final = {Scale.SMOKE: (8, 16), Scale.QUICK: (32, 128), Scale.FULL: (256, 512, 1024)}
TABLE: Final = {Scale.SMOKE: (), Scale.QUICK: (), Scale.FULL: (2048, 4096)}  # beside 1024
WIDEST: Final = {Scale.SMOKE: 64, Scale.QUICK: 256, Scale.FULL: 2048}  # that is solved in closed form
SAMPLE: Final[dict[Scale, Parameters]] = {
    Scale.SMOKE: {"n_train": 512, "n_test": 256},
    Scale.QUICK: {"n_train": 1 << 13, "n_test": 1 << 12},
    Scale.FULL: {"n_train": 1 << 16, "n_test": 1 << 14},
}
TRAINED: Final[dict[Scale, Parameters]] = {
    Scale.SMOKE: {"epochs": 2, "learning_rate": 1e-3},
    Scale.QUICK: {"epochs": 40, "learning_rate": 3e-4},
    Scale.FULL: {"epochs": 50, "learning_rate": 1e-5},
}
RMSPROP: Final[Parameters] = {"optimiser": "rmsprop", "batch_size": 32, "rho": 0.9, "epsilon": 1e-7, "intercept": True}
RIDGE: Final[Parameters] = {"optimiser": "ridge", "alpha": 1e-9, "intercept": True}
IN_TABLE: Final = ("dense-linear", "dense-relu", "dsm-50", "dsm-25")


def parameters(scale: Scale) -> Iterator[Parameters]:
    """A task for each seed, target, model, number of active units and way to find the top layer.

    The wide layers of Table 1, which take longest, come late, and more seeds of Figure 3 last.
    """
    for seed in range(SEEDS[scale]):
        for target, model, active in _grid(ACTIVE[scale]):
            yield _trained(scale, seed, target, model, active)
        for target in TARGETS:
            for model, active in _layers(scale, target):
                where: Parameters = {"target": target, "model": model, "active": active, "seed": seed}
                yield {**where, **SAMPLE[scale], **RIDGE}
    for active, seed, target, model in product(
        TABLE[scale], range(SEEDS[scale]), ("polynomial", "hypercube"), IN_TABLE
    ):
        yield _trained(scale, seed, target, model, active)
    for seed in range(SEEDS[scale], FIGURE_3_SEEDS[scale]):
        for model, active in product(IN_TABLE, ACTIVE[scale]):
            yield _trained(scale, seed, "projected", model, active)


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


LINE, VARIANCE = "best linear function", "variance of the target"
FIGURES: Final = {"polynomial": "Figure 1a", "hypercube": "Figure 2a", "projected": "Figure 3"}
OPTIMISERS: Final = {"rmsprop": "trained by RMSProp", "ridge": "closed form"}
MAIN: Final = ("dense-linear", "dense-relu", "dense-relu-biased", "dsm-50", "dsm-25")
HASHED: Final = (
    "dense-linear",
    "dense-relu",
    "random-hash-50",
    "random-hash-25",
    "random-hash-relu-50",
    "dsm-50",
    "dsm-25",
)
MEDIANS: Final = "Points: median over seeds, each with its own target, points and weights; bars: least and greatest."
MEANS: Final = (
    "Points: means over seeds; bars: their 95 % intervals. Printed: the paper's Table 1, without uncertainty."
)


def _label(row: Row) -> str:
    return MODELS[row["model"]].label


def _of(rows: Rows, models: tuple[str, ...], **equal: str) -> Rows:
    return Rows(row for model in models for row in rows.where(model=model, **equal))


def _once(rows: Rows, x: str) -> Rows:
    """One row of each seed and x, whatever the model: for what does not depend on it."""
    return Rows({(row[x], row["seed"]): row for row in rows}.values())


def errors(rows: Rows, *, target: str, optimiser: str, models: tuple[str, ...], x: str = "active") -> Frame:
    """Error as a share of the target's variance, a curve a model, and that of the best linear function."""
    found = _of(rows, models, target=target, optimiser=optimiser)
    shares = curves(found, _label, x, "mse / variance", "share")
    once = _once(found, x)
    line = curves(once, LINE, x, "linear_mse / variance", "share")
    return joined(shares, line)


def table(rows: Rows, *, target: str) -> Frame:
    """Table 1: errors as measured and as printed; variance and best linear function of the same seeds."""
    found = Rows(
        row
        for row in _of(rows, tuple(PRINTED), target=target, optimiser="rmsprop")
        if (row["active"] in PRINTED["dsm-50"])
    )
    measured = curves(found, _label, "active", "mse", interval=mean_of)
    once = _once(found, "active")
    references = (
        curves(once, LINE, "active", "linear_mse", "mse", interval=mean_of),
        curves(once, VARIANCE, "active", "variance", "mse", interval=mean_of),
    )
    printed = {
        model: sorted((active, mse) for active, mse in column.items() if active in measured["active"])
        for model, column in PRINTED.items()
    }
    cells = [(MODELS[model].label, *cell) for model, column in printed.items() for cell in column]
    told = curve_frame([(f"printed: {name}", at, range_of([mse])) for name, at, mse in cells], "active", "mse")
    return joined(measured, told, *references)


def flops(rows: Rows) -> Frame:
    """Operations of one prediction for n = 8, as the paper counts them and with the choice of the units."""
    models = ("dense-linear", "dsm-50", "dsm-25", "random-hash-25")
    found = _of(rows, models, target="polynomial", optimiser="rmsprop")
    paper = curves(found, "as the paper counts: 18 a unit", "active", "flops", "operations")
    sparse = Rows(row for row in found if MODELS[row["model"]].share < 1)
    whole = curves(sparse, lambda row: f"{_label(row)}, with the choice", "active", "flops_with_routing", "operations")
    return joined(paper, whole)


def _routing(rows: Rows) -> Frame:
    models = ("dsm-50", "dsm-25", "random-hash-50", "random-hash-25")
    found = Rows(row for row in _of(rows, models, optimiser="rmsprop") if row["target"] != "hypercube")
    return curves(
        found,
        lambda row: f"{_label(row)}, n = {(64 if row['target'] == 'projected' else 8)}",
        "active",
        lambda row: 100 * (1 - row["flops / flops_with_routing"]),
        "percent",
    )


def _errors(name: str, title: str, caption: str, frame: Callable[[Rows], Frame], x_label: str) -> Chart[Rows]:
    return Chart(
        name,
        title,
        f"{caption} {MEDIANS}",
        frame,
        curve_plot(
            x_label,
            "mean squared error / variance",
            log=(2, 10),
            lines=(LINE,),
            levels={VARIANCE: 1.0},
            size=(6.0, 4.8),
        ),
    )


EXPERIMENT: Final = Experiment(
    name="frozen-layers",
    paper="B",
    place="Figures 1a, 2a, 3, 4 and Table 1",
    title="Dense, sparse and randomly hashed layers over a frozen bottom layer",
    summary="Targets on the cube [-1, 1]^n, drawn uniformly: a polynomial of degree 4 in n = 8 variables, a function "
    "of the hypercube's corners (n = 8), and p(Ax) with n = 64 and k = 8. The bottom layer is Glorot-uniform and "
    "frozen. DSM keeps the largest pre-activations by value and passes them on unchanged; a random hash keeps units "
    "whatever the input. Chosen where the paper is silent: batches of 32, no biases below, an intercept above from 0, "
    "Glorot-uniform top weights, RMSProp with rho .9 and epsilon 1e-7 (rate 1e-5, 50 epochs). The closed form is "
    "ridge regression with a penalty of 1e-9 of the mean square of a unit: the best that a top layer can do. Layers "
    "of one width and seed have the same weights; all comparisons are within a seed.",
    parameters=parameters,
    measure=measure,
    claims=(*CLAIMS, *BARS),
    charts=(
        *(
            _errors(
                f"{target}-{optimiser}",
                f"{FIGURES[target]}: {TARGETS[target]}, {OPTIMISERS[optimiser]}",
                "Test error of models with a frozen bottom layer at equal active units.",
                partial(errors, target=target, optimiser=optimiser, models=MAIN),
                "active units",
            )
            for target in TARGETS
            for optimiser in OPTIMISERS
        ),
        *(
            _errors(
                f"{target}-hash-{optimiser}",
                f"Figure 4: {TARGETS[target]}, {OPTIMISERS[optimiser]}",
                "A random hash keeps units whatever the input; features are linear unless ReLU is written.",
                partial(errors, target=target, optimiser=optimiser, models=HASHED),
                "active units",
            )
            for target in ("polynomial", "hypercube")
            for optimiser in OPTIMISERS
        ),
        *(
            _errors(
                f"{target}-width",
                f"Closed form at equal total width: {TARGETS[target]}",
                "All units are counted, active or not: DSM 50 % meets ReLU without biases.",
                partial(errors, target=target, optimiser="ridge", models=MAIN[1:], x="width"),
                "total width (units)",
            )
            for target in TARGETS
        ),
        *(
            Chart(
                f"{target}-table",
                f"Table 1: {TARGETS[target]}",
                MEANS,
                partial(table, target=target),
                curve_plot("active units", "mean squared error", log=(2, 10), lines=(LINE, VARIANCE), size=(6.0, 5.0)),
            )
            for target in ("polynomial", "hypercube")
        ),
        Chart(
            "flops",
            "Operations by both counts, n = 8",
            "Top-k must compute all pre-activations; a random hash computes ranks of all units. Additions, products "
            "and comparisons count one each.",
            flops,
            curve_plot("active units", "operations a prediction", log=(2, 2)),
        ),
        Chart(
            "routing",
            "What choosing the units costs",
            "Operations that only the choice needs, as a share of all of a prediction.",
            _routing,
            curve_plot("active units", "% of the operations", log=(2, 0)),
        ),
    ),
    order=20,
)
