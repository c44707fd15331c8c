"""Figures of the frozen layers: error against active units, against total width, Table 1, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows, mean_of
from sparsact_papers.experiments.paper_b.frozen_claims import PRINTED
from sparsact_papers.experiments.paper_b.frozen_models import MODELS, TARGETS
from sparsact_papers.reports.curves import curves, joined, plot_curves

LINE, VARIANCE = "best linear function", "variance of the target"
FIGURES = {"polynomial": "Figure 1a", "hypercube": "Figure 2a", "projected": "Figure 3"}
OPTIMISERS = {"rmsprop": "trained by RMSProp", "ridge": "closed form"}
MAIN = ("dense-linear", "dense-relu", "dense-relu-biased", "dsm-50", "dsm-25")
HASHED = ("dense-linear", "dense-relu", "random-hash-50", "random-hash-25", "random-hash-relu-50", "dsm-50", "dsm-25")
MEDIANS = (
    "Points: median over seeds, each with its own target, points and weights; bars: least and greatest with five seeds."
)
MEANS = "Points: means over seeds; bars: their 95 % intervals. Printed: the paper's Table 1, without uncertainty."


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
    shares = curves(found, series=_label, x=x, y=lambda row: row["mse"] / row["variance"], y_name="share")
    once = _once(found, x)
    line = curves(once, series=lambda _: LINE, x=x, y=lambda row: row["linear_mse"] / row["variance"], y_name="share")
    return joined(shares, line)


def plot_errors(frame: Frame, *, x_label: str) -> Figure:
    """Logarithmic axes, with the best linear function and the variance."""
    return plot_curves(
        frame,
        x_label=x_label,
        y_label="mean squared error / variance",
        log_x=2,
        log_y=10,
        lines=(LINE,),
        levels={VARIANCE: 1.0},
        size=(6.0, 4.8),
    )


def table(rows: Rows, *, target: str) -> Frame:
    """Table 1: errors as measured and as printed; variance and best linear function of the same seeds."""
    found = Rows(row for row in _of(rows, tuple(PRINTED), target=target, optimiser="rmsprop") if _in_table(row))
    measured = curves(found, series=_label, x="active", y="mse", interval=mean_of)
    once = _once(found, "active")
    references = (
        curves(once, series=lambda _: LINE, x="active", y="linear_mse", y_name="mse", interval=mean_of),
        curves(once, series=lambda _: VARIANCE, x="active", y="variance", y_name="mse", interval=mean_of),
    )
    printed = {
        model: sorted((active, mse) for active, mse in column.items() if active in measured["active"])
        for model, column in PRINTED.items()
    }
    flat = [(f"printed: {MODELS[model].label}", *cell) for model, column in printed.items() for cell in column]
    values = [mse for _, _, mse in flat]
    told: Frame = {
        "series": [name for name, _, _ in flat],
        "active": [active for _, active, _ in flat],
        "mse": values,
        "low": values,
        "high": values,
        "repetitions": [1] * len(flat),
    }
    return joined(measured, told, *references)


def _in_table(row: Row) -> bool:
    return row["active"] in PRINTED["dsm-50"]


def plot_table(frame: Frame) -> Figure:
    """Errors against active units."""
    return plot_curves(
        frame,
        x_label="active units",
        y_label="mean squared error",
        log_x=2,
        log_y=10,
        lines=(LINE, VARIANCE),
        size=(6.0, 5.0),
    )


def flops(rows: Rows) -> Frame:
    """Operations of one prediction for n = 8, as the paper counts them and with the choice of the units."""
    models = ("dense-linear", "dsm-50", "dsm-25", "random-hash-25")
    found = _of(rows, models, target="polynomial", optimiser="rmsprop")
    paper = curves(found, series=lambda _: "as the paper counts: 18 a unit", x="active", y="flops", y_name="operations")
    sparse = Rows(row for row in found if MODELS[row["model"]].share < 1)
    whole = curves(
        sparse,
        series=lambda row: f"{_label(row)}, with the choice",
        x="active",
        y="flops_with_routing",
        y_name="operations",
    )
    return joined(paper, whole)


def plot_flops(frame: Frame) -> Figure:
    """Operations against active units."""
    return plot_curves(frame, x_label="active units", y_label="operations a prediction", log_x=2, log_y=2)


def routing(rows: Rows) -> Frame:
    """Share of the choice of the units in the cost of a prediction."""
    models = ("dsm-50", "dsm-25", "random-hash-50", "random-hash-25")
    found = Rows(row for row in _of(rows, models, optimiser="rmsprop") if row["target"] != "hypercube")
    return curves(
        found,
        series=lambda row: f"{_label(row)}, n = {64 if row['target'] == 'projected' else 8}",
        x="active",
        y=lambda row: 100 * (1 - row["flops"] / row["flops_with_routing"]),
        y_name="percent",
    )


def plot_routing(frame: Frame) -> Figure:
    """Per cent against active units."""
    return plot_curves(frame, x_label="active units", y_label="% of the operations", log_x=2)


def _errors(name: str, title: str, caption: str, frame: Callable[[Rows], Frame], x_label: str) -> Chart[Rows]:
    return Chart(name, title, f"{caption} {MEDIANS}", frame, partial(plot_errors, x_label=x_label))


def _against_active(target: str, optimiser: str) -> Chart[Rows]:
    return _errors(
        f"{target}-{optimiser}",
        f"{FIGURES[target]}: {TARGETS[target]}, {OPTIMISERS[optimiser]}",
        "Test error of models with a frozen bottom layer at equal active units.",
        partial(errors, target=target, optimiser=optimiser, models=MAIN),
        "active units",
    )


def _hashed(target: str, optimiser: str) -> Chart[Rows]:
    return _errors(
        f"{target}-hash-{optimiser}",
        f"Figure 4: {TARGETS[target]}, {OPTIMISERS[optimiser]}",
        "A random hash keeps units whatever the input; features are linear unless ReLU is written.",
        partial(errors, target=target, optimiser=optimiser, models=HASHED),
        "active units",
    )


def _against_width(target: str) -> Chart[Rows]:
    return _errors(
        f"{target}-width",
        f"Closed form at equal total width: {TARGETS[target]}",
        "All units are counted, active or not: DSM 50 % meets ReLU without biases.",
        partial(errors, target=target, optimiser="ridge", models=MAIN[1:], x="width"),
        "total width (units)",
    )


def _table(target: str) -> Chart[Rows]:
    return Chart(f"{target}-table", f"Table 1: {TARGETS[target]}", MEANS, partial(table, target=target), plot_table)


CHARTS = (
    *(_against_active(target, optimiser) for target in TARGETS for optimiser in OPTIMISERS),
    *(_hashed(target, optimiser) for target in ("polynomial", "hypercube") for optimiser in OPTIMISERS),
    *(_against_width(target) for target in TARGETS),
    *(_table(target) for target in ("polynomial", "hypercube")),
    Chart(
        "flops",
        "Operations by both counts, n = 8",
        "Top-k must compute all pre-activations; a random hash computes ranks of all units. Additions, products and "
        "comparisons count one each.",
        flops,
        plot_flops,
    ),
    Chart(
        "routing",
        "What choosing the units costs",
        "Operations that only the choice needs, as a share of all of a prediction.",
        routing,
        plot_routing,
    ),
)
