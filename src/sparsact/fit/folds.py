"""Predictions of each fold by what was learned from the others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def out_of_fold(folds: NDArray[np.intp], predict: Callable[[int, NDArray[np.bool_]], Array]) -> Array:
    """Predictions (rows, functions) of all rows; ``predict`` gives those of one fold from what the others teach.

    It receives the number of the fold and the mask (rows,) of its rows.
    """
    masks = [(int(fold), folds == fold) for fold in np.unique(folds)]
    pieces = [predict(fold, rows) for fold, rows in masks]
    found = np.empty((len(folds), pieces[0].shape[1]))
    for (_, rows), piece in zip(masks, pieces, strict=True):
        found[rows] = piece
    return found
