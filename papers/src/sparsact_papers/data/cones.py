"""Functions made of cones: the family of Theorem 4.2, and lower envelopes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_generator, checked_positive
from sparsact_papers.data.subspaces import Subspace
from sparsact_papers.data.targets import Composed, Target, row_blocks

MOST_CUBES: Final = 10**7


@dataclass(frozen=True, eq=False, repr=False)
class Cones(Target):
    r"""Disjoint cones of one slope, up and down.

    .. math:: f(x) = \sum_v \operatorname{sgn}(h_v) \max(0, |h_v| - L \|x - v\|_2)

    The centres v are the rows of an array (N, n), the heights h_v = f(v) any numbers, and the slope is L.

    Notes
    -----
    The paper's sum, of :math:`\max(0, h_v - L \operatorname{sgn}(h_v) \|x - v\|)`, loses every cone below 0.

    *f is L-Lipschitz, on all of R^n.* Each term is. Let x and y lie in the balls of two different cones (else one term
    tells of both). The balls are convex with disjoint interiors, so the segment from x to y leaves the first at some x'
    before it enters the second at some y', and f is 0 at both: :math:`|f(x) - f(y)| \le |f(x) - f(x')| +
    |f(y') - f(y)| \le L \|x - x'\| + L \|y' - y\| \le L \|x - y\|`. On a ray from a centre f falls by exactly L.

    Only centres near a point are looked at (two k-d trees).

    Examples
    --------
    >>> f = Cones([[0, 0], [2, 0]], [1, -1])
    >>> f([[0, 0], [0.25, 0], [2, 0], [2, 0.5]])
    array([ 1.  ,  0.75, -1.  , -0.5 ])
    """

    centres: NDArray[np.float64]
    heights: NDArray[np.float64]
    slope: float = 1.0

    def __post_init__(self) -> None:
        _own_centres(self)
        object.__setattr__(self, "slope", checked_positive(self.slope, "the slope"))
        self._refuse_overlaps()

    def _refuse_overlaps(self) -> None:
        radii = np.abs(self.heights) / self.slope
        pairs = cKDTree(self.centres).query_pairs(2 * float(radii.max()), output_type="ndarray")
        apart = np.linalg.norm(self.centres[pairs[:, 0]] - self.centres[pairs[:, 1]], axis=1)
        excess = radii[pairs].sum(axis=1) - apart
        if (excess > 1e-9 * np.abs(apart)).any():
            v, w = pairs[int(np.argmax(excess))]
            raise ValueError(
                f"cones {v} and {w} overlap: their radii |height| / slope are {radii[v]:.3g} and {radii[w]:.3g}, "
                f"their distance {apart[np.argmax(excess)]:.3g}; lower the heights or raise the slope."
            )

    @property
    def n(self) -> int:
        """Number of columns."""
        return int(self.centres.shape[1])

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        values, sizes = np.empty(len(X)), np.abs(self.heights)
        tree, reach = cKDTree(self.centres), float(sizes.max()) / self.slope
        for block in row_blocks(len(X), 3 * min(len(sizes), 64)):
            near = cKDTree(X[block]).sparse_distance_matrix(tree, reach, output_type="ndarray")
            bumps = np.maximum(0.0, sizes[near["j"]] - self.slope * near["v"]) * np.sign(self.heights[near["j"]])
            values[block] = np.bincount(near["i"], weights=bumps, minlength=len(X[block]))
        return values

    def _steepness(self, radius: float) -> float:
        return self.slope if self.heights.any() else 0.0

    def __repr__(self) -> str:
        return f"Cones(n={self.n}, centres={len(self.centres)}, slope={self.slope:g})"


@dataclass(frozen=True, eq=False, repr=False)
class LowerEnvelope(Target):
    r"""The lowest of cones that open upwards.

    .. math:: f(x) = \min_j\, (\|x - c_j\|_2 + h_j)

    The centres c_j are the rows of an array (N, n), the heights h_j any numbers.

    Notes
    -----
    *f is 1-Lipschitz*, as a minimum of such functions, *and no less*: where j attains the minimum at x and
    :math:`x \ne c_j`, a step t towards :math:`c_j` lowers f by exactly t, as the j-th cone does, and no 1-Lipschitz
    function falls faster.

    N distances a point, in blocks.

    Examples
    --------
    >>> LowerEnvelope([[0, 0], [3, 4]], [0, -1])([[0, 0], [3, 0], [3, 4]])
    array([ 0.,  3., -1.])
    """

    centres: NDArray[np.float64]
    heights: NDArray[np.float64]

    def __post_init__(self) -> None:
        _own_centres(self)

    @property
    def n(self) -> int:
        """Number of columns."""
        return int(self.centres.shape[1])

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.empty(len(X))
        for block in row_blocks(len(X), len(self.centres)):
            distances = cdist(X[block], self.centres)
            distances += self.heights
            values[block] = distances.min(axis=1)
        return values

    def _steepness(self, radius: float) -> float:
        return 1.0

    def __repr__(self) -> str:
        return f"LowerEnvelope(n={self.n}, centres={len(self.centres)})"


def random_cones(domain: Subspace, epsilon: float, lipschitz: float = 1.0, *, rng: np.random.Generator) -> Composed:
    r"""A random member of Theorem 4.2's family on a subspace: a cone of height +-epsilon in each cube of a grid.

    The part of the subspace within [-1, 1]^ambient is covered by a grid of cubes of side ``2 * epsilon / lipschitz``
    along the basis; each cube that lies inside holds the cone of its inscribed ball.

    Parameters
    ----------
    domain : Subspace
        The theorem takes one that diagonals span: :func:`~sparsact_papers.data.diagonal_subspace`.
    epsilon : float
        Height of the cones.
    lipschitz : float
        Their slope.
    rng : numpy.random.Generator

    Returns
    -------
    target : Composed
        A function of ``domain.ambient`` columns; ``target.target.centres`` (N, domain.dimension) are the centres in the
        basis. The family has 2^N members, and any two differ by ``2 * epsilon`` at a centre.

    Notes
    -----
    Off the subspace it is the function of the projection, so it is ``lipschitz``-Lipschitz on all of R^ambient.
    """
    half = checked_positive(epsilon, "`epsilon`") / checked_positive(lipschitz, "`lipschitz`")
    centres = _grid_inside(domain, half)
    heights = checked_generator(rng).choice([-float(epsilon), float(epsilon)], size=len(centres))
    return Composed(Cones(centres, heights, lipschitz), domain.basis.T)


def _grid_inside(domain: Subspace, half: float) -> NDArray[np.float64]:
    """Centres of the cubes of half-side ``half`` in the subspace's coordinates, (N, k), that the unit cube contains."""
    steps = [ceil(extent / (2 * half)) for extent in domain.extents]
    if prod(2 * step + 1 for step in steps) > MOST_CUBES:
        raise ValueError(f"a grid of cubes of side {2 * half:.3g} is too fine in {domain}; raise epsilon / lipschitz.")
    axes = [2.0 * half * np.arange(-step, step + 1) for step in steps]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, domain.dimension)
    reach = np.abs(domain.basis).sum(axis=1) * half  # of a cube, along each coordinate of the ambient space
    inside = [
        np.all(np.abs(centres[b] @ domain.basis.T) + reach <= 1, axis=1)
        for b in row_blocks(len(centres), domain.ambient)
    ]
    kept: NDArray[np.float64] = centres[np.concatenate(inside)]
    if not len(kept):
        raise ValueError(f"no cube of side {2 * half:.3g} lies inside {domain}; lower epsilon / lipschitz.")
    return kept


def _own_centres(target: Cones | LowerEnvelope) -> None:
    """Check and copy the fields ``centres`` and ``heights``."""
    centres = checked_reals(target.centres, "`centres`").copy()
    heights = checked_reals(target.heights, "`heights`").copy()
    if centres.ndim != 2 or not centres.size or heights.shape != centres.shape[:1]:
        raise ValueError(
            f"`centres` (N, n) and `heights` (N,) need at least one centre each; got {centres.shape}, {heights.shape}."
        )
    object.__setattr__(target, "centres", centres)
    object.__setattr__(target, "heights", heights)
