"""Figures of routed feed-forward layers: validation loss against steps, and against operations for a token."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, Chart, Frame, figure, list_axis, rows, styled
from sparsact_papers.experiments import Rows, range_of
from sparsact_papers.experiments.practice.routed_transformer_claims import MODELS
from sparsact_papers.reports.curves import curves, plot_curves

SEEDS = "Median over seeds; bars: least and greatest."
PARTS = {"units": "active_flops", "routing": "routing_flops", "all else": "other_flops"}


def loss_frame(found: Rows) -> Frame:
    """Validation loss of each model against steps."""
    steps = Rows(
        row.with_values(step=step, loss=loss)
        for row in found
        for step, loss in zip(row["at"], row["losses"], strict=True)
    )
    return curves(steps, series="model", x="step", y="loss", interval=range_of)


def cost_frame(found: Rows) -> Frame:
    """The last loss of each model against what its feed-forward layers cost."""
    last = Rows(row.with_values(loss=row["losses"][-1], megaflops=row["flops"] / 1e6) for row in found)
    return curves(last, series="model", x="megaflops", y="loss", interval=range_of)


def parts_frame(found: Rows) -> Frame:
    """Operations of each model for a token, by what they are for."""
    first = [found.where(model=model)[0] for model in MODELS if found.where(model=model)]
    parts = {part: [row[name] / 1e6 for row in first] for part, name in PARTS.items()}
    return {"model": [row["model"] for row in first], **parts, "parameters": [row["parameters"] for row in first]}


@styled
def plot_parts(frame: Frame) -> Figure:
    """A bar a model."""
    drawing = figure(6.4, 3.6)
    axes = drawing.subplots()
    names = [row[0] for row in rows(frame)]
    left = np.zeros(len(names))
    for part, colour in zip(PARTS, COLOURS, strict=False):
        values = np.asarray(frame[part], dtype=float)
        axes.barh(range(len(names)), values, left=left, color=colour, label=part, height=0.6)
        left += values
    list_axis(axes, names)
    axes.set_xlabel("million operations for a token")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "loss",
        "Validation loss while training",
        f"Mean cross-entropy of the next character. {SEEDS}",
        loss_frame,
        partial(plot_curves, x_label="step", y_label="validation loss in nats"),
    ),
    Chart(
        "cost",
        "Quality and operations",
        f"Validation loss after the last step; operations of the feed-forward layers, routing included. {SEEDS}",
        cost_frame,
        partial(
            plot_curves,
            x_label="million operations for a token, feed-forward",
            y_label="validation loss in nats",
            log_x=10,
        ),
    ),
    Chart(
        "parts",
        "What a token costs",
        "Forward pass: units that are on, the choice of them, and attention and logits.",
        parts_frame,
        plot_parts,
    ),
)
