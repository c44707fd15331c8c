"""Sets that halfspaces cut from a few points, and bounds on their number."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import points as cube

MARGIN: Final = 1e-9


def dichotomies(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    r"""Every set :math:`\{i : \langle w, x_i \rangle > b\}` of distinct points, one per row, shape (N, m).

    A halfspace can be moved until its boundary is a hyperplane spanned by points, and each set is found from there:
    one side of such a hyperplane, and a dichotomy of the points on it. Points that are moved and scaled to lie within
    1 of 0 count as on a hyperplane up to a distance of 1e-9.

    >>> from sparsact.hypercube import points
    >>> [len(dichotomies(points(n).astype(float))) for n in (1, 2, 3)]
    [4, 14, 104]
    """
    affine = centred(points)[0]
    known: dict[bytes, NDArray[np.bool_]] = {}

    def sets_of(chosen: NDArray[np.intp]) -> NDArray[np.bool_]:
        if (key := chosen.tobytes()) not in known:
            coordinates = spanned(affine[chosen])
            if coordinates.shape[1] == len(chosen):  # no point depends on the others
                return cube(len(chosen)) < 0
            found = []
            for signs in boundaries(coordinates):
                on = signs == 0
                tilted = sets_of(chosen[on]) if on.any() else np.ones((1, 0), dtype=bool)
                sides = np.repeat(signs[None] > 0, len(tilted), axis=0)
                sides[:, on] = tilted
                found.append(sides)
            known[key] = np.unique(np.concatenate(found), axis=0)
        return known[key]

    return sets_of(np.arange(len(points)))


def centred(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Rows ``((x - centre) / radius, -1)`` with entries within 1 of 0, the centre, and the radius."""
    centre = points.mean(axis=0)
    radius = float(np.abs(points - centre).max()) or 1.0
    return np.hstack([(points - centre) / radius, -np.ones((len(points), 1))]), centre, radius


def spanned(affine: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same points in coordinates of the space that they span."""
    _, lengths, axes = np.linalg.svd(affine, full_matrices=False)
    coordinates: NDArray[np.float64] = affine @ axes[lengths > MARGIN].T
    return coordinates


def boundaries(coordinates: NDArray[np.float64]) -> NDArray[np.int8]:
    """Sides, -1, 0 or 1, of all points to each hyperplane that some of them span; both orientations."""
    m, rank = coordinates.shape
    if rank == 1:
        normals = np.ones((1, 1))
    else:
        spanning = np.array(list(combinations(range(m), rank - 1)))
        _, lengths, axes = np.linalg.svd(coordinates[spanning])
        normals = axes[lengths[:, -1] > MARGIN, -1]
    heights = normals @ coordinates.T
    signs = np.unique(np.where(np.abs(heights) > MARGIN, np.sign(heights), 0).astype(np.int8), axis=0)
    return np.unique(np.concatenate([signs, -signs]), axis=0)


def max_sets(m: int, n: int) -> int:
    r"""Largest number of dichotomies of m points in n dimensions, :math:`2 \sum_{i \le n} \binom{m-1}{i}` (Cover)."""
    return 2 * sum(comb(m - 1, i) for i in range(min(n, m - 1) + 1)) if m else 1


def max_faces(m: int, n: int) -> int:
    """Maximum number of faces of the cones of all dichotomies of m points in n dimensions."""
    # Faces with i points on the boundary are cut by the other m - i, in n - i dimensions; each is shared by 2**i cones.
    return sum(comb(m, i) * 2**i * max_sets(m - i, n - i) for i in range(min(n, m) + 1))
