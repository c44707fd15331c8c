"""What one layer of a model reads, and the lines of a measurement on layers that are in no block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sparsact.inference.plan import finite


@dataclass(frozen=True)
class LayerMeasurement:
    """Exact zeros in the inputs of one layer of a model.

    Attributes
    ----------
    name : str
        As in ``model.get_submodule``.
    kind : str
        Its class.
    density : float
        Share of the numbers read that are not exactly 0, over all calls; a convolution reads a number of its input once
        for every tap of the kernel that falls on it. NaN where none was seen.
    share : float
        Bytes of the layer over the bytes of all parameters, ``Measurement.model_bytes``.
    block : str or None
        Name of its block.
    reason : str
        Reason why it belongs to no block; empty if it belongs to one.

    Examples
    --------
    >>> import sparsact as sa
    >>> import torch
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Conv1d(1, 2, 1), nn.ReLU(), nn.Conv1d(2, 1, 1))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[[1.0]], [[-1.0]]]))
    >>> _ = model[0].bias.data.zero_()
    >>> [(layer.name, layer.density) for layer in sa.measure(model, torch.ones(1, 1, 5)).layers]
    [('0', 1.0), ('2', 0.5)]
    """

    name: str
    kind: str
    density: float
    share: float
    block: str | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON holds them."""
        return finite(asdict(self))  # type: ignore[no-any-return] # a dictionary stays one


HEADINGS: Final = ("layer outside of blocks", "kind", "density", "bytes", "computed densely because")
NAMED: Final = 3  # layers without zeros that a line names


def outside_of_blocks(layers: Sequence[LayerMeasurement]) -> list[str]:
    """Lines on layers in no block: one for each whose input has exact zeros, and one for the others of each reason."""
    outside = [layer for layer in layers if layer.block is None]
    cells = [
        (one.name, one.kind, f"{one.density:.2%}", f"{one.share:.1%}", one.reason) for one in outside if one.density < 1
    ]
    cells = [HEADINGS, *cells] if cells else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    others: dict[str, list[LayerMeasurement]] = {}
    for one in outside:
        if not one.density < 1:
            others.setdefault(one.reason, []).append(one)
    for reason, found in others.items():
        names = ", ".join(one.name or "the model" for one in found[:NAMED]) + ", ..." * (len(found) > NAMED)
        count = f"{len(found)} {'other ' * bool(cells)}layer{'s' * (len(found) > 1)}"
        lines.append(f"{count} in no block, {sum(one.share for one in found):.1%} of the bytes: {reason} ({names}).")
    return lines
