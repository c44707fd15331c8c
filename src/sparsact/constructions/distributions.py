"""Distributions of inputs, as functions ``(n_samples, rng) -> X``: over the cube and over what the lifts induce."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsact.checks import checked_generator, checked_size
from sparsact.constructions.residues import ResidueLift
from sparsact.hypercube import bits_to_signs
from sparsact.lift import Lift

Distribution: TypeAlias = Callable[[int, np.random.Generator], NDArray[np.int8]]


def uniform(n: int) -> Distribution:
    """The uniform distribution on the cube of ``n`` signs.

    Parameters
    ----------
    n : int
        Number of signs.

    Returns
    -------
    distribution : Distribution
        Called with a number of points and a generator, signs (m, n).

    Examples
    --------
    >>> uniform(5)(2, np.random.default_rng(0)).shape
    (2, 5)
    """
    n = checked_size(n, "the number `n` of coordinates")
    return lambda n_samples, rng: bits_to_signs(checked_generator(rng).integers(2, size=(n_samples, n), dtype=np.int8))


def lifted(lift: Lift | ResidueLift) -> Distribution:
    """The distribution that a lift induces of uniform points, or of uniform residues.

    Parameters
    ----------
    lift : Lift or ResidueLift
        From points to lifted points.

    Returns
    -------
    distribution : Distribution
        Called with a number of points and a generator, lifted points (m, n).

    Examples
    --------
    >>> lifted(Lift.quadratic(3))(2, np.random.default_rng(0)).shape
    (2, 9)
    """
    return lambda n_samples, rng: lift.sample(n_samples, rng=rng)
