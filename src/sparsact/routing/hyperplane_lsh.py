"""HyperplaneLSH: buckets by the sides of random hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing import hyperparameters
from sparsact.routing.inputs import Shapes
from sparsact.routing.namespace import namespace
from sparsact.routing.router import Router, State
from sparsact.routing.scores import scores
from sparsact.routing.seeds import hash_generator
from sparsact.routing.selection import Selection

MOST_HASHES = 30


@dataclass(frozen=True)
class HyperplaneLSH(Router):
    r"""One unit in each table: the bucket of the sign pattern that random hyperplanes through 0 give the input.

    .. math:: z_i(x) = [\langle a_i, x \rangle > 0], \qquad \text{bucket} = \sum_i z_i(x)\, 2^i,
              \qquad a_i \sim N(0, I_d).

    An input on a hyperplane has bit 0 there. Unit ``table * 2**n_hashes + bucket`` stands for a bucket.

    Parameters
    ----------
    n_hashes : int
        Hyperplanes a table, m in [B]_; at most 30, since there are 2**n_hashes units a table.
    n_tables : int, default=1
        Tables, s in [B]_; each switches on one unit.
    seed : int, default=0
        Which hyperplanes.

    Notes
    -----
    Inner products are rounded: an input closer to a hyperplane than that may fall on either side, from one machine or
    one batch to another.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section 2.2.

    Examples
    --------
    >>> state = {"directions": [[[1.0, 0.0], [0.0, 1.0]]]}
    >>> HyperplaneLSH(2)([[3, 4], [-3, 4], [3, 0]], state).indices.tolist()
    [[3], [2], [1]]
    """

    n_hashes: int
    n_tables: int = 1
    seed: int = 0

    name: ClassVar[str] = "hyperplane_lsh"

    def __post_init__(self) -> None:
        hyperparameters.sizes(self, "n_hashes", "n_tables")
        hyperparameters.seed(self)
        if self.n_hashes > MOST_HASHES:
            raise ValueError(f"{self.n_hashes} hyperplanes make 2**{self.n_hashes} units; take {MOST_HASHES} at most.")

    def width(self, in_features: int) -> int:
        """A unit for each bucket of each table."""
        return self.n_tables << self.n_hashes

    def n_active(self, in_features: int) -> int:
        """One a table."""
        return self.n_tables

    def state_shapes(self, in_features: int) -> Shapes:
        """``directions``, the normals of the hyperplanes."""
        return {"directions": (self.n_tables, self.n_hashes, in_features)}

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Directions of this seed."""
        return {"directions": hash_generator(self.seed).standard_normal((self.n_tables, self.n_hashes, in_features))}

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """The bucket of each row of ``x`` in each table."""
        xp = namespace(x)
        directions = state["directions"]
        sides = scores(x, xp.reshape(directions, (-1, directions.shape[-1])))
        sides = xp.reshape(sides, (x.shape[0], self.n_tables, self.n_hashes))
        powers = 2 ** xp.arange(self.n_hashes, dtype=xp.int64, device=x.device)
        buckets = xp.sum(xp.where(sides > 0, powers, 0), axis=2)
        tables = xp.arange(self.n_tables, dtype=xp.int64, device=x.device)
        width = self.width(x.shape[1])
        return Selection.mask(buckets + tables * 2**self.n_hashes, width, dtype=x.dtype, logits=sides)

    def flops(self, in_features: int) -> int:
        """Inner products, and a comparison each."""
        return self.n_tables * self.n_hashes * 2 * in_features
