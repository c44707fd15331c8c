"""Figures of sparsity that training brings: density by layer, validation loss, dead and rarely active units."""

from __future__ import annotations

from functools import partial

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows, range_of
from sparsact_papers.experiments.practice.induced_sparsity_claims import MODELS
from sparsact_papers.reports.curves import curves, plot_curves
from sparsact_papers.reports.practice.panels import panelled, plot_panels

SEEDS = "Median over seeds; bars: least and greatest."


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


def density_frame(found: Rows) -> Frame:
    """Density of each layer against steps, a panel a model."""
    rows = histories(found)
    return panelled(
        {
            model: curves(rows.where(model=model), series="layer", x="step", y="density", interval=range_of)
            for model in MODELS
        }
    )


def loss_frame(found: Rows) -> Frame:
    """Validation loss of each model against steps."""
    return curves(histories(found).where(layer="layer 1"), series="model", x="step", y="loss", interval=range_of)


def units_frame(found: Rows) -> Frame:
    """Shares of units that are dead, and that are rarely active, against steps."""
    rows = Rows(_mean_over_layers(row, i) for row in found for i in range(len(row["at"])))
    kinds = {"dead": "off for all", "rare": "on for less than 1 in 1000"}
    return panelled(
        {
            told: curves(rows, series="model", x="step", y=kind, y_name="share", interval=range_of)
            for kind, told in kinds.items()
        }
    )


def _mean_over_layers(row: Row, i: int) -> Row:
    units = row["hidden"] * row["n_layers"]
    return row.with_values(step=row["at"][i], **{name: sum(row[name][i]) / units for name in ("dead", "rare")})


CHARTS = (
    Chart(
        "density",
        "Units that are on while training",
        f"Share of the units of each layer that are on, a mean over characters of the validation text. {SEEDS}",
        density_frame,
        partial(plot_panels, x_label="step", y_label="density", log_y=10),
    ),
    Chart(
        "loss",
        "Validation loss while training",
        f"Mean cross-entropy of the next character, without the penalty. {SEEDS}",
        loss_frame,
        partial(plot_curves, x_label="step", y_label="validation loss in nats"),
    ),
    Chart(
        "units",
        "Dead units and rarely active ones",
        f"Shares of all units, counted over the characters of one evaluation. {SEEDS}",
        units_frame,
        partial(plot_panels, x_label="step", y_label="share of units"),
    ),
)
