"""The sets that halfspaces cut from a few points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

MARGIN = 1e-9


def dichotomies(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    r"""Every set :math:`\{i : \langle w, x_i \rangle > b\}` of distinct points, one a row, shape (N, m).

    Points are taken one at a time. A halfspace that made a set of the first ones says to which side the next one falls;
    a linear program says whether it can fall to the other side too, of points moved and scaled to lie within 1 of 0: a
    margin below 1e-9 counts as none. Sets that leave the first point out are the
    complements of the others. At most N linear programs of n + 2 unknowns for each point; N is :math:`O(m^n)`.

    >>> from sparsact.hypercube import points
    >>> [len(dichotomies(points(n).astype(float))) for n in (1, 2, 3)]
    [4, 14, 104]
    """
    centred = points - points.mean(axis=0)
    affine = np.hstack([centred / max(1e-300, np.abs(centred).max()), -np.ones((len(points), 1))])
    sides = [(np.ones(1), affine[0])]
    for i in range(1, len(points)):
        sides = [
            (np.append(signs, sign), halfspace)
            for signs, known in sides
            for sign in (1.0, -1.0)
            if (halfspace := _halfspace(affine[: i + 1], np.append(signs, sign), known)) is not None
        ]
    first = np.array([signs > 0 for signs, _ in sides])
    return np.concatenate([first, ~first])


def _halfspace(
    affine: NDArray[np.float64], signs: NDArray[np.float64], known: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """``(w, b)`` with all points strictly at their sides, or None: ``known`` if it is right for the last one too."""
    if signs[-1] * (affine[-1] @ known) > MARGIN:
        return known
    unknowns = affine.shape[1]
    solution: Any = linprog(  # the largest margin, of weights and threshold in [-1, 1]
        np.append(np.zeros(unknowns), -1),
        A_ub=np.hstack([-signs[:, None] * affine, np.ones((len(affine), 1))]),
        b_ub=np.zeros(len(affine)),
        bounds=[(-1, 1)] * unknowns + [(None, 1)],
        method="highs",
    )
    *halfspace, reached = solution.x  # there is always one: margin 0 at (w, b) = 0
    return np.array(halfspace) if reached > MARGIN else None
