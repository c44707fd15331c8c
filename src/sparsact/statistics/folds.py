"""Folds: how rows and groups are dealt, and predictions of each fold by what was learned from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.hashing import mixed


def deal(first: int, n_rows: int, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Folds of rows first..first + n_rows - 1 of a stream: each block of ``n_folds`` rows is a random permutation.

    Depends on the row's number and the seed alone, not on how the stream was cut.
    """
    block = np.arange(first // n_folds, (first + n_rows - 1) // n_folds + 1)
    numbers = block[:, None] * n_folds + np.arange(n_folds)
    keys = mixed(numbers.astype(np.uint64), seed)
    folds = keys.argsort(axis=1, kind="stable").ravel()
    return folds[first % n_folds :][:n_rows]


def deal_groups(counts: Mapping[str, int], n_folds: int, seed: int) -> dict[str, int]:
    """A fold for each group, by its rows: the largest first, each to the fold with the fewest; equal ones by the seed.

    Examples
    --------
    >>> deal_groups({"a": 2, "b": 5, "c": 3}, n_folds=2, seed=0)
    {'b': 0, 'c': 1, 'a': 1}
    """
    drawn = dict(zip(sorted(counts), mixed(np.arange(len(counts), dtype=np.uint64), seed), strict=True))
    folds = [(0, fold) for fold in range(n_folds)]
    heapify(folds)
    fold_of = {}
    for group in sorted(counts, key=lambda group: (-counts[group], int(drawn[group]))):
        rows, fold = folds[0]
        fold_of[group] = fold
        heapreplace(folds, (rows + counts[group], fold))
    return fold_of


def deal_at_random(n_rows: int, n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Folds (m,) of distinct rows, whose order says nothing; sizes differ by one at most."""
    return rng.permutation(n_rows) % min(n_folds, n_rows)


def out_of_fold(
    folds: NDArray[np.intp], predict: Callable[[int, NDArray[np.bool_]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Predictions (m, ...) of all rows; ``predict`` predicts one fold from what the others teach.

    It receives the number of the fold and the mask (m,) of its rows.

    Examples
    --------
    Each row by the mean of the other fold:

    >>> folds, y = np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 6.0])
    >>> out_of_fold(folds, lambda fold, rows: np.full(rows.sum(), y[~rows].mean())).tolist()
    [4.0, 2.0, 4.0, 2.0]
    """
    masks = [(int(fold), folds == fold) for fold in np.unique(folds)]
    pieces = [predict(fold, rows) for fold, rows in masks]
    found = np.empty((len(folds), *pieces[0].shape[1:]))
    for (_, rows), piece in zip(masks, pieces, strict=True):
        found[rows] = piece
    return found
