"""Where inputs lie: sets within [-1, 1]^ambient of a lower dimension, the cube, and how uniform points are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.parameters import checked_generator, checked_size


class Domain(ABC):
    """A set within [-1, 1]^ambient, with the uniform distribution on it."""

    if TYPE_CHECKING:  # a subclass has fields or properties of these names

        @property
        def dimension(self) -> int:
            """Dimension of the set itself."""

        @property
        def ambient(self) -> int:
            """Number of columns of its points."""

    @abstractmethod
    def _sample(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Uniform points, shape (m, ambient)."""

    def sample(self, m: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent uniform points, (m, ambient)."""
        return self._sample(checked_size(m, "the number `m` of points", 0), checked_generator(rng))


@dataclass(frozen=True)
class Cube(Domain):
    """The cube [-1, 1]^n, from which paper B draws the inputs of its experiments (Section A.1)."""

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checked_size(self.n, "the number `n` of columns"))

    @property
    def dimension(self) -> int:
        """``n``."""
        return self.n

    @property
    def ambient(self) -> int:
        """``n``."""
        return self.n

    def _sample(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, size=(m, self.n))


CHAINS: Final = 1024


def hit_and_run(Q: NDArray[np.float64], m: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
    r"""Points Qz, with z by hit-and-run on :math:`P = \{z : \|Qz\|_\infty \le 1\}`, shape (m, d).

    From z, draw a random direction and move to a uniform point of the chord of P along it. The uniform distribution is
    invariant for any symmetric law of the direction: here normal, with the covariance of P as the first half of the
    burn-in has found it.

    Parameters
    ----------
    Q : ndarray of shape (d, k)
        Orthonormal columns.
    m : int
    rng : numpy.random.Generator

    Notes
    -----
    1024 independent chains start at the centre, take ``40 * k`` steps of burn-in, and then give a point each every
    ``4 * k`` steps. In a ball a step shrinks the mean of z by ``1 - 1/k``, so two points of one chain are correlated by
    about exp(-4), and of the start exp(-40) is left. P is no ball; nothing so good is proved of it.

    Cost: ``4 * k`` steps a point, each of ``4 * k * d`` operations.

    References
    ----------
    .. [S] R. L. Smith, "Efficient Monte Carlo procedures for generating points uniformly distributed over bounded
       regions", Operations Research 32 (1984).
    """
    k = Q.shape[1]
    rows = Q[np.abs(Q).max(axis=1) > 0].T  # what constrains nothing
    Z: NDArray[np.float64] = np.zeros((CHAINS, k))
    scale: NDArray[np.float64] = np.eye(k)
    for _ in range(20 * k):
        Z = _step(Z, rows, scale, rng)
    scale[:] = np.linalg.cholesky(Z.T @ Z / CHAINS + 1e-3 * np.eye(k))
    for _ in range(16 * k):
        Z = _step(Z, rows, scale, rng)
    found = [np.empty((0, k))]
    for _ in range(ceil(m / CHAINS)):
        for _ in range(4 * k):
            Z = _step(Z, rows, scale, rng)
        found.append(Z)
    return np.concatenate(found)[:m] @ Q.T


def _step(
    Z: NDArray[np.float64], rows: NDArray[np.float64], scale: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    directions = rng.normal(size=Z.shape) @ scale.T
    slope, place = directions @ rows, Z @ rows
    place *= np.sign(slope)
    np.abs(slope, out=slope)
    ahead, behind = ((1 - place) / slope).min(axis=1), ((1 + place) / slope).min(axis=1)
    # Not the ends themselves, where rounding would leave P.
    share = rng.uniform(1e-12, 1 - 1e-12, size=len(Z))
    return np.asarray(Z + ((ahead + behind) * share - behind)[:, None] * directions)
