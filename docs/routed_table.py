"""The table of feed-forward layers with equal active units, computed from the rows that the repository keeps."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import numpy as np
from verdict_table import findings, plain

from sparsact_papers.experiments import Rows
from sparsact_papers.intervals import mean_of
from sparsact_papers.practice.routed_layers import DENSE, IMAGES, LONG, LONGER, MODELS, TEXT, gains, operations

HEAD = (
    "layer",
    "operations of active units",
    "with their choice (times dense)",
    "images: points over dense",
    "text: nats below dense",
    f"text, {LONGER} times the steps",
)
TIMES = Path(__file__).parents[1] / "results" / "routed_steps.jsonl"
AT_EQUAL_TIME = (
    "layer",
    "images: time of a step",
    "points in dense's time",
    "text: time of a step",
    "nats in dense's time",
)


def routed_table(path: Path) -> None:
    """Write what each layer costs for a token and gains over a dense one: ``top_k_or_experts.rst`` includes it."""
    (found,) = (one for one in findings() if one.experiment.name == "routed-layers")
    rows = found.rows
    write_list(path, [HEAD, *(_line(rows, model) for model in MODELS[IMAGES])])


def routed_times(path: Path) -> None:
    """Write what a step of each layer costs, and bounds of its gain in the time in which a dense one is trained."""
    (found,) = (one for one in findings() if one.experiment.name == "routed-layers")
    write_list(path, [AT_EQUAL_TIME, *(_timed(found.rows, model) for model in MODELS[IMAGES] if model != DENSE)])


def write_list(path: Path, cells: list[tuple[str, ...]]) -> None:
    """Write a page that is nothing but a table, whose first line is its head."""
    lines = [
        ".. list-table::",
        "   :header-rows: 1",
        "   :class: compact",
        f"   :widths: {' '.join(['20'] * len(cells[0]))}",
        "",
    ]
    for first, *rest in cells:
        lines += [f"   * - {plain(first)}", *(f"     - {cell}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _timed(rows: Rows, model: str) -> tuple[str, ...]:
    """A model's times of a step over the dense one's, and its gains, each with bounds."""
    cells = [model]
    for data in (IMAGES, TEXT):
        if model not in MODELS[data]:
            cells += ["–", "–"]
            continue
        times = step_times(data, model)
        low, high = gain_in_time(rows, data, model, times)
        cells += [f"{times:.2f}", f"{low:+.3g} to {high:+.3g}".replace("-", "−")]
    return tuple(cells)


def step_times(data: str, model: str) -> float:
    """Time of a training step over that of the dense layer, the median of the newest measurement that is kept."""
    measured = [json.loads(line) for line in TIMES.read_text(encoding="utf-8").splitlines()]
    asked = {"work": data, "quantity": f"{model}, times the dense layer's"}
    return float([row["value"] for row in measured if asked.items() <= row.items()][-1])


def gain_in_time(rows: Rows, data: str, model: str, times: float) -> tuple[float, float]:
    """Least and largest mean gain over a dense layer in the time of its training, if a step takes ``times`` as long.

    The least is where the model's own curve is when that time is over, on lines between evaluations: its learning rate
    is still high there. The largest is where it is after as many steps as the dense layer had.
    """
    key, sign = ("accuracies", 1) if data == IMAGES else ("losses", -1)
    pairs = rows.where(data=data, model=model).paired(rows.where(data=data, model=DENSE), "seed")
    early = [np.interp(row["at"][-1] / times, row["at"], row[key]) - dense[key][-1] for row, dense in pairs]
    return sign * float(mean(early)), mean(gains(rows, data, model, DENSE, least=1))


def _line(rows: Rows, model: str) -> tuple[str, ...]:
    one, total = rows.where(data=IMAGES, model=model)[0], operations(rows, IMAGES, model)
    return (
        model,
        f"{one['active_flops']:,}",
        f"{total:,} ({total / operations(rows, IMAGES, DENSE):.2f})",
        *(_gain(rows, data, model) for data in (IMAGES, TEXT, LONG)),
    )


def _gain(rows: Rows, data: str, model: str) -> str:
    """The gain over the dense layer, with an interval as soon as there are two pairs of seeds."""
    if model == DENSE or model not in MODELS[data]:
        return "–"
    found = gains(rows, data, model, DENSE, least=1)
    return f"{mean_of(found)}; {len(found)} seeds" if len(found) > 1 else f"{found[0]:+.3g}; one seed".replace("-", "−")
