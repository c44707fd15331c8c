"""The confusion matrix of held-out rows."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import INK, Frame, figure, shortened, styled
from sparsact.reports.summary import Confusion

LONGEST_LYING = 10  # characters of a name that stands beside its neighbours
SHOWN_COUNTS = 20  # classes beyond which the cells are too small for numbers


def frame(confusion: Confusion) -> Frame:
    """One row an actual class, one column a predicted class, and the share of the row that is right."""
    counts = confusion.counts
    right = np.diag(counts) / np.maximum(counts.sum(axis=1), 1)
    predicted = {f"predicted {name}": counts[:, j].tolist() for j, name in enumerate(confusion.classes)}
    return {"actual": list(confusion.classes), **predicted, "share right": right.tolist()}


@styled
def plot(frame: Frame) -> Figure:
    """Cells shaded by share of the actual class, with the counts."""
    classes = [str(name) for name in frame["actual"]]
    counts = np.array([frame[f"predicted {name}"] for name in classes]).T
    labels = [shortened(name) for name in classes]
    side, longest = 2.0 + min(0.46 * len(classes), 8.0), max(map(len, labels), default=0)
    upright = len(classes) >= 12 or longest > LONGEST_LYING
    room = 0.1 * max(0, longest - LONGEST_LYING)  # for long names, down the side and along the foot
    drawing = figure(side + 0.8 + room, side + room)
    axes = drawing.subplots()
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    picture = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (i, j), count in np.ndenumerate(counts) if len(classes) <= SHOWN_COUNTS else ():
        if count:
            axes.text(
                j, i, str(count), ha="center", va="center", color="white" if share[i, j] > 0.6 else INK, fontsize=9
            )
    axes.set_xticks(range(len(classes)), labels, rotation=90 if upright else 0)
    axes.set_yticks(range(len(classes)), labels)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("actual class (held-out rows)")
    drawing.colorbar(picture, ax=axes, shrink=0.8, label="share of the actual class")
    return drawing
