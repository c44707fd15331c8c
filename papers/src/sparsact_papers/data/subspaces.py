"""Random orthonormal frames, and random subspaces that they span."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.optimize import linprog

from sparsact.validation.arrays import checked_columns, checked_reals
from sparsact.validation.parameters import checked_generator, checked_size
from sparsact_papers.data.domains import Domain, hit_and_run


def checked_frame(frame: ArrayLike, what: str) -> NDArray[np.float64]:
    """A copy of ``frame`` (ambient, dimension) as float64 whose columns are orthonormal to 1e-8."""
    columns = checked_reals(frame, what).copy()
    if columns.ndim != 2 or not 1 <= columns.shape[1] <= columns.shape[0]:
        raise ValueError(
            f"{what} must have shape (ambient, dimension), 1 <= dimension <= ambient; got {columns.shape}."
        )
    error = float(np.abs(columns.T @ columns - np.eye(columns.shape[1])).max())
    if error > 1e-8:
        raise ValueError(
            f"{what} must be orthonormal; inner products are off by {error:.2g}: pass numpy.linalg.qr's Q."
        )
    return columns


def random_frame(ambient: int, dimension: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
    """Orthonormal columns, uniform over all such frames (Haar measure): shape (ambient, dimension).

    Q of the QR decomposition of a normal matrix, with the signs that make R's diagonal positive.
    """
    ambient, dimension = checked_dimensions(ambient, dimension)
    Q, R = np.linalg.qr(checked_generator(rng).normal(size=(ambient, dimension)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def checked_dimensions(ambient: int, dimension: int) -> tuple[int, int]:
    """Both as integers with ``1 <= dimension <= ambient``."""
    dimension = checked_size(dimension, "the dimension")
    ambient = checked_size(ambient, "the ambient dimension")
    if dimension > ambient:
        raise ValueError(f"{dimension} dimensions do not fit into an ambient dimension of {ambient}; raise the latter.")
    return ambient, dimension


LEAST_ACCEPTANCE: Final = 0.002  # rejection is about as fast as the walk at 0.005; being exact is worth a factor
PILOT: Final = 1 << 14
ROWS: Final = 1 << 14  # proposals at a time


@dataclass(frozen=True, eq=False, repr=False)
class Subspace(Domain):
    r"""The part of a k-dimensional subspace within [-1, 1]^d: :math:`\{Q z : \|Q z\|_\infty \le 1\}`.

    Parameters
    ----------
    basis : array-like of shape (ambient, dimension)
        Q, of orthonormal columns.

    Notes
    -----
    Points are uniform on the polytope :math:`P = \{z \in R^k : \|Qz\|_\infty \le 1\}`; nothing is clipped, which would
    put mass on its boundary. :attr:`method` says how they are drawn:

    *rejection* is exact, and its points are independent. Proposals are uniform on the parallelepiped
    :math:`\{z : \|Bz\|_\infty \le 1\}` of k rows B of Q, chosen by QR with column pivoting for a large determinant:
    it contains P, as it drops constraints. It is used where at least 1 proposal in 500 is a point of P, which is always
    so for k = 1 and k = d, and for random subspaces of R^64 up to k of about 20.

    *hit-and-run* elsewhere: a Markov chain with the uniform distribution as its limit, asymptotically exact only; see
    :func:`~.hit_and_run.hit_and_run` for its burn-in and thinning. P is well rounded for it:
    the rows of Q are no longer than 1 and :math:`\|z\| = \|Qz\|`, so P contains the ball of radius 1 and lies in the
    ball of radius :math:`\sqrt d`. To judge the sample, compare with rejection (``acceptance``), or check whether means
    of functions of the points agree with a longer run.

    Examples
    --------
    The diagonal of the square, of length 2 sqrt 2:

    >>> line = Subspace([[0.5**0.5], [0.5**0.5]])
    >>> line.method, line.extents.round(6)
    ('rejection', array([1.414214]))
    """

    basis: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", checked_frame(self.basis, "`basis`"))

    @property
    def dimension(self) -> int:
        """Number k of columns of the basis."""
        return int(self.basis.shape[1])

    @property
    def ambient(self) -> int:
        """Number d of rows of the basis."""
        return int(self.basis.shape[0])

    @cached_property
    def extents(self) -> NDArray[np.float64]:
        """The largest value of each coordinate z_j over P, shape (k,), by linear programming."""
        constraints, ones = np.vstack([self.basis, -self.basis]), np.ones(2 * self.ambient)
        objectives = -np.eye(self.dimension)
        corners = np.array([linprog(c, constraints, ones, bounds=(None, None)).x for c in objectives])
        return np.diag(corners).copy()

    @cached_property
    def acceptance(self) -> float:
        """Share of the proposals of rejection that are points of P, estimated from 16,384 fixed ones."""
        return len(self._accepted(PILOT, np.random.default_rng(0))) / PILOT

    @property
    def method(self) -> str:
        """How points are drawn: ``"rejection"`` or ``"hit-and-run"``."""
        return "rejection" if self.acceptance >= LEAST_ACCEPTANCE else "hit-and-run"

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The z of points, or of their projections, shape (m, dimension)."""
        return checked_columns(X, self.ambient) @ self.basis

    def _sample(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        if self.method == "hit-and-run":
            return hit_and_run(self.basis, m, rng=rng)
        found, n_found = [np.empty((0, self.ambient))], 0
        while n_found < m:
            wanted = int(1.1 * (m - n_found) / self.acceptance) + 16
            found.append(self._accepted(min(wanted, ROWS), rng))
            n_found += len(found[-1])
        return np.concatenate(found)[:m]

    def _accepted(self, n_proposals: int, rng: np.random.Generator) -> NDArray[np.float64]:
        X = rng.uniform(-1, 1, size=(n_proposals, self.dimension)) @ self._proposal
        return np.asarray(X[np.abs(X).max(axis=1) <= 1])

    @cached_property
    def _proposal(self) -> NDArray[np.float64]:
        """The transpose of Q B^-1: uniform rows of [-1, 1]^k times it are uniform on the parallelepiped."""
        _, _, order = qr(self.basis.T, mode="economic", pivoting=True)
        tightest = order[: self.dimension]
        proposal = np.linalg.solve(self.basis[tightest].T, self.basis.T).astype(np.float64, copy=False)
        proposal[:, tightest] = np.eye(self.dimension)  # without rounding, which would refuse some points on the way
        return proposal

    def __repr__(self) -> str:
        return f"Subspace(dimension={self.dimension}, ambient={self.ambient})"


def random_subspace(ambient: int, dimension: int, *, rng: np.random.Generator) -> Subspace:
    """A subspace of a uniformly random direction (Haar measure), within the cube.

    Parameters
    ----------
    ambient, dimension : int
        ``1 <= dimension <= ambient``.
    rng : numpy.random.Generator

    Returns
    -------
    domain : Subspace
    """
    return Subspace(random_frame(ambient, dimension, rng=rng))


def diagonal_subspace(ambient: int, dimension: int, *, rng: np.random.Generator) -> Subspace:
    """The subspace that random, linearly independent diagonals of the cube span: the domain of Theorem 4.2's proof.

    Parameters
    ----------
    ambient, dimension : int
        ``1 <= dimension <= ambient``.
    rng : numpy.random.Generator

    Returns
    -------
    domain : Subspace

    Examples
    --------
    It reaches two corners of the cube, at a distance of 2 sqrt(9):

    >>> float(diagonal_subspace(9, 1, rng=np.random.default_rng(0)).extents[0].round(6))
    3.0
    """
    ambient, dimension = checked_dimensions(ambient, dimension)
    diagonals = np.zeros((ambient, dimension))
    while np.linalg.matrix_rank(diagonals) < dimension:
        diagonals = checked_generator(rng).choice([-1.0, 1.0], size=(ambient, dimension))
    return Subspace(np.linalg.qr(diagonals).Q)
