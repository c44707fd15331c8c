"""How many rows the buckets hold."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sparsact.reports.frame import Frame
from sparsact.reports.style import BLUE, figure, styled


def frame(counts: NDArray[np.int64]) -> Frame:
    """Buckets by rows, in classes that double: 1, 2-3, 4-7, ..."""
    place = np.floor(np.log2(counts)).astype(np.int64)
    most = int(place.max()) if len(place) else 0
    buckets = np.bincount(place, minlength=most + 1)
    rows = np.bincount(place, counts, minlength=most + 1)
    return {
        "least rows": [2**i for i in range(most + 1)],
        "most rows": [2 ** (i + 1) - 1 for i in range(most + 1)],
        "buckets": buckets.tolist(),
        "share of rows": (rows / max(1.0, float(rows.sum()))).tolist(),
    }


@styled
def plot(frame: Frame) -> Figure:
    """A bar a class of loads: how many buckets have it; above it, the share of all rows that lie there."""
    drawing = figure(6.2, 3.4)
    axes = drawing.subplots()
    bars = axes.bar(range(len(frame["buckets"])), frame["buckets"], width=0.8, color=BLUE)
    axes.bar_label(bars, [f"{share:.0%}" for share in frame["share of rows"]], padding=3, fontsize=9)
    labels = [
        str(low) if low == high else f"{low}–{high}"
        for low, high in zip(frame["least rows"], frame["most rows"], strict=True)
    ]
    axes.set_xticks(range(len(labels)), labels, rotation=40 if len(labels) > 8 else 0)
    axes.grid(visible=True, axis="y")
    axes.margins(y=0.12)
    axes.set_xlabel("rows in a bucket (percentages: share of all rows)")
    axes.set_ylabel("buckets")
    return drawing
