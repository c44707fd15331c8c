"""Units that are points: the nearest ones, or the identical one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from sparsact.routing.array_functions import Array, namespace, ones
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import EMPTY, Selection
from sparsact.routing.top_k import largest
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import check_random_state, check_sizes


@dataclass(frozen=True)
class Nearest(Router):
    """Chooses the k nearest centres in Euclidean distance, the first of equally near ones (Section 3, k-NN).

    Parameters
    ----------
    n_active : int
        Active units.
    n_centres : int, default=256
        Standard normal centres to draw, where no state is given.
    random_state : int, default=0
        Seed of the points.

    Examples
    --------
    >>> Nearest(1)([[0.9, 0.2]], Nearest.state_of([[0, 0], [1, 0], [0, 1]])).indices
    array([[1]])
    """

    name: ClassVar[str] = "nearest"
    state_names: ClassVar[tuple[str, ...]] = ("centres",)
    free_length: ClassVar[bool] = True
    n_active: int
    n_centres: int = 256
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_active", "n_centres")
        check_random_state(self)
        check_choice(self.n_active, self.n_centres)

    @staticmethod
    def state_of(centres: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The state whose units are these centres (t, in_features)."""
        return {"centres": _points(centres, "centres")}

    def width(self, in_features: int) -> int:
        """``n_centres``."""
        return self.n_centres

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``centres`` (n_centres, in_features), standard normal."""
        return {"centres": rng.normal(size=(self.n_centres, in_features))}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The k nearest centres, with weight 1; distances, negated, are the logits."""
        centres = state["centres"]
        nearness = -distances(x, centres)
        places = largest(nearness, self.n_active)
        return Selection.of(places, ones(tuple(places.shape), x), centres.shape[0], logits=nearness)

    def flops(self, in_features: int) -> int:
        """A difference, a square and a sum for each centre and column: routing by k-NN saves nothing (Section 3)."""
        return 3 * self.n_centres * in_features + self.n_centres


@dataclass(frozen=True)
class Interpolation(Router):
    """Chooses the unit whose point equals the input, and none for other inputs (Section 3, interpolation).

    Parameters
    ----------
    n_points : int, default=256
        Standard normal points to draw, where no state is given.
    random_state : int, default=0
        Seed of the points.

    Examples
    --------
    >>> Interpolation()([[0.0, 1.0], [0.5, 0.5]], Interpolation.state_of([[1, 0], [0, 1]])).indices
    array([[ 1],
           [-1]])
    """

    name: ClassVar[str] = "interpolation"
    state_names: ClassVar[tuple[str, ...]] = ("points",)
    free_length: ClassVar[bool] = True
    n_points: int = 256
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_points")
        check_random_state(self)

    @staticmethod
    def state_of(points: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """The state whose units are these points (t, in_features), no two alike."""
        rows = _points(points, "points")
        if len(np.unique(rows, axis=0)) != len(rows):
            raise ValueError("two points are equal, and a function has one value at each point: drop one of them.")
        return {"points": rows}

    def width(self, in_features: int) -> int:
        """``n_points``."""
        return self.n_points

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``points`` (n_points, in_features), standard normal."""
        return {"points": rng.normal(size=(self.n_points, in_features))}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The point that is the input, with weight 1, or an empty place."""
        xp = namespace(x)
        same = distances(x, state["points"], largest_difference=True) == 0  # no square that could underflow
        met = xp.any(same, axis=1, keepdims=True)
        place = xp.argmax(xp.astype(same, xp.int64), axis=1, keepdims=True)
        weights = xp.astype(met, x.dtype)
        return Selection.of(xp.where(met, place, EMPTY), weights, state["points"].shape[0])

    def flops(self, in_features: int) -> int:
        """A difference and a comparison for each point and column."""
        return 2 * self.n_points * in_features + self.n_points


def distances(x: Array, points: Array, *, largest_difference: bool = False) -> Any:
    """Distances (m, t), Euclidean or by the largest difference, from differences: equal points are equally far."""
    if isinstance(x, np.ndarray):
        return cdist(x, points, "chebyshev" if largest_difference else "euclidean")
    xp = namespace(x)
    power = float("inf") if largest_difference else 2.0
    return xp.cdist(x.to(xp.float64), points.to(xp.float64), power, "donot_use_mm_for_euclid_dist")


def _points(points: ArrayLike, what: str) -> NDArray[np.float64]:
    rows = checked_reals(points, f"`{what}`")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"`{what}` must be an array (t, d) of at least one point; got shape {rows.shape}.")
    return rows.copy()
