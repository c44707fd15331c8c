"""Validated points, the signs to average over, and the mean over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier.estimate import Estimate, mean_of
from sparsact.hypercube import points
from sparsact.validation.arrays import checked_reals, checked_signs
from sparsact.validation.parameters import checked_positive, checked_size

MAX_POINTS: Final = 12  # up to which all sign vectors are taken


def checked_sample(X: ArrayLike, support: ArrayLike | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``X`` (m, n), and with the rows of ``support`` below it."""
    rows = checked_reals(X, "`X`")
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"`X` must have one row per point, at least one, and columns; got shape {rows.shape}.")
    others = checked_reals(rows[:0] if support is None else support, "`support`")
    if others.ndim != 2 or others.shape[1] != rows.shape[1]:
        raise ValueError(f"`support` must have {rows.shape[1]} columns, as `X` has; got shape {others.shape}.")
    for name, points_ in (("X", X), ("support", support)):
        if points_ is not None and np.asarray(points_).dtype == bool:
            raise ValueError(f"`{name}` holds bits; points are signs: pass sparsact.hypercube.bits_to_signs({name}).")
    return rows, np.concatenate([rows, others])


def check_scale(W: float, B: float) -> None:
    """Refuse a scale that is not positive."""
    checked_positive(W, "the scale `W`")
    checked_positive(B, "the scale `B`")


def checked_n_active(k: int | None, s: int) -> int:
    """Number of active units, of ``s``; s itself is the dense class."""
    return s if k is None else min(checked_size(k, "`k`"), s)


def checked_draws(signs: ArrayLike | None, m: int) -> NDArray[np.float64]:
    """Sign vectors (N, m): all of them, if none are given."""
    if signs is None:
        if m > MAX_POINTS:
            raise ValueError(
                f"{m} points have 2**{m} sign vectors, too many to use all: draw some and pass them as `signs`, "
                f"rng.choice([-1, 1], size=(120, {m}))."
            )
        return points(m).astype(np.float64)
    draws = checked_signs(signs, m).astype(np.float64)
    if len(draws) < 2:
        raise ValueError(f"`signs` must have at least 2 rows, to give a standard error; got {len(draws)}.")
    return draws


def mean_of_draws(maxima: NDArray[np.float64], exact: bool) -> Estimate:
    """Mean over the draws, the first axis; without error if these are all sign vectors."""
    found = mean_of([maxima])
    return replace(found, standard_error=found.standard_error * 0) if exact else found
