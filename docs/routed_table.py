"""The table of feed-forward layers with equal active units, computed from the rows that the repository keeps."""

from __future__ import annotations

from pathlib import Path

from verdict_table import findings, plain

from sparsact_papers.experiments import Rows
from sparsact_papers.intervals import mean_of
from sparsact_papers.practice.routed_layers import DENSE, IMAGES, MODELS, TEXT, gains

HEAD = ("layer", "active units: operations", "choosing them", "images: points over dense", "text: nats below dense")


def routed_table(path: Path) -> None:
    """Write what each layer costs for a token and gains over a dense one: ``top_k_or_experts.rst`` includes it."""
    (found,) = (one for one in findings() if one.experiment.name == "routed-layers")
    rows = found.rows
    cells = [HEAD, *(_line(rows, model) for model in MODELS[IMAGES])]
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 20 20 16 24 20", ""]
    for first, *rest in cells:
        lines += [f"   * - {plain(first)}", *(f"     - {cell}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _line(rows: Rows, model: str) -> tuple[str, ...]:
    one = rows.where(data=IMAGES, model=model)[0]
    return (
        model,
        f"{one['active_flops']:,}",
        f"{one['routing_flops']:,}",
        *(_gain(rows, data, model) for data in (IMAGES, TEXT)),
    )


def _gain(rows: Rows, data: str, model: str) -> str:
    """The gain over the dense layer, with an interval as soon as there are two pairs of seeds."""
    if model == DENSE or model not in MODELS[data]:
        return "–"
    found = gains(rows, data, model, DENSE, least=1)
    return f"{mean_of(found)}; {len(found)} seeds" if len(found) > 1 else f"{found[0]:+.3g}; one seed".replace("-", "−")
