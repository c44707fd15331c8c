"""Columns that may be the target again: numbers that follow it closely, and numbers named like it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.survey import listed
from sparsact.datasets.tables import Table

CLOSE = 0.999  # correlation, in size, of values or of their ranks
LEAST_ROWS = 10
MOST_ROWS = 4096
MOST_NUMBERS = 1 << 22


def suspicions(table: Table) -> list[str]:
    """Warnings for people, of which a fit takes no further notice.

    The first rows of the table are looked at: up to 4,096, and fewer where columns are many.
    """
    names = close_columns(table)
    notes = []
    if names:
        notes.append(
            f"warning: almost a copy of the target, or a rising or falling function of it: {listed(names)}; if that is "
            "not known before the target is, leave it out with --ignore."
        )
    alike = [name for name in named_alike(table.encoding) if name not in names]
    if alike:
        notes.append(
            f"warning: named like the target: {listed(alike)}; if they were measured with it, leave them out with "
            "--ignore."
        )
    return notes


def close_columns(table: Table) -> list[str]:
    """Features whose values, or ranks of values, correlate with a target by 0.999 or more in size."""
    most = min(MOST_ROWS, MOST_NUMBERS // len(table.feature_names))
    X, y = first_rows(table, most)
    if len(X) < LEAST_ROWS:
        return []
    answers = y.reshape(len(y), -1)
    target = table.encoding.targets[0]
    if isinstance(target, Classes):
        answers = np.equal(answers, np.arange(len(target.values))).astype(np.float64)
    closest = np.zeros(X.shape[1])
    for values, of in ((X, answers), (rankdata(X, axis=0), rankdata(answers, axis=0))):
        closest = np.maximum(closest, np.abs(correlations(values, of)).max(axis=1))
    return [name for name, size in zip(table.feature_names, closest, strict=True) if size >= CLOSE]


def first_rows(table: Table, most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and targets of the first rows."""
    n_rows, parts = 0, []
    for X, y in table.batches():
        parts.append((X[: most - n_rows].astype(np.float64), y[: most - n_rows]))
        n_rows += len(X)
        if n_rows >= most:
            break
    X, y = (np.concatenate(of) for of in zip(*parts, strict=True))
    return X, y


def correlations(X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's coefficients of columns of X with those of Y; 0 where one is constant."""
    return np.asarray(_standard(X).T @ _standard(Y) / len(X))


def _standard(X: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.abs(X).max(axis=0)
    scaled = X / np.where(sizes > 0, sizes, 1.0)
    centred = scaled - scaled.mean(axis=0)
    deviations = centred.std(axis=0)
    constant = deviations <= 1e-12
    return np.asarray(np.where(constant, 0.0, centred) / np.where(constant, 1.0, deviations))


def named_alike(encoding: Encoding) -> list[str]:
    """Columns of numbers whose names begin with the same word as a target's, where words are joined: ``size_left``."""
    words = {word for name in encoding.target_names if (word := _first_word(name))}
    return [c.name for c in encoding.columns if isinstance(c, Real) and _first_word(c.name) in words]


def _first_word(name: str) -> str | None:
    first, *others = re.split(r"[\W_]+", name.strip().casefold())
    return first if others and others != [""] and re.search("[a-z]{3}", first) else None
