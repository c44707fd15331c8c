"""Product measures on the cube: each coordinate is bit 1 (sign -1) with a probability of its own, independently."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_reals

Array = NDArray[np.float64]
Measure = str | ArrayLike
UNIFORM: Final = "uniform"  # all points are equally frequent
DATA: Final = "data"  # each coordinate is as often 1 as in the rows that a learner was fitted to


def checked_measure(measure: Measure, n: int, thing: object = None) -> Array | None:
    """Probability (n,) of bit 1 of each coordinate; None where all are 1/2. ``"data"`` takes that of a fitted thing."""
    if isinstance(measure, str):
        if measure == UNIFORM:
            return None
        found = getattr(thing, "frequencies_", None) if measure == DATA else None
        if found is None:
            more = "; pass a fitted polynomial itself, or the frequencies of its rows" if measure == DATA else ""
            raise ValueError(
                f"`measure` is 'uniform', the probability of bit 1, or one for each coordinate; got {measure!r}{more}."
            )
        measure = found
    given = checked_reals(measure, "`measure`")
    if given.shape not in ((), (n,)):
        raise ValueError(f"`measure` is one probability, or one for each of {n} coordinates; got shape {given.shape}.")
    frequencies = np.broadcast_to(given, n).copy()
    if (fixed := np.flatnonzero((frequencies <= 0) | (frequencies >= 1))).size:
        raise ValueError(
            f"probabilities must lie strictly between 0 and 1; coordinate {fixed[0]} has {frequencies[fixed[0]]:g}: "
            "fix it by `restrict`, or leave the column out."
        )
    return None if (frequencies == 0.5).all() else frequencies


def moments(frequencies: Array | None, n: int) -> tuple[Array, Array]:
    r"""Means :math:`\mu_i = 1 - 2 p_i` and deviations :math:`2 \sqrt{p_i (1 - p_i)}` of the signs, both (n,)."""
    p = np.full(n, 0.5) if frequencies is None else frequencies
    return 1 - 2 * p, 2 * np.sqrt(p * (1 - p))
