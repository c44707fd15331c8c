"""The bottom layer and its mask: what the top layer sees of an input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.learners.dsm.bottom import Bottom
from sparsact.routing import Router, TopK

Array = NDArray[np.float64]
VALUES_AT_ONCE = 2**18  # of a block of rows: 2 MB, which stay in the cache


@dataclass(frozen=True, eq=False)
class SparseLayer:
    r""":math:`\operatorname{mask}(x) \circ \phi(x)`, with the mask that a router chooses.

    Attributes
    ----------
    bottom : Bottom
        phi.
    router : Router
        Chooses by pre-activations, as top-k does, or by the inputs.
    state : dict of arrays
        What the router needs beyond its parameters.
    """

    bottom: Bottom
    router: Router
    state: dict[str, NDArray[Any]]

    @property
    def by_values(self) -> bool:
        """Whether units are chosen by their pre-activations, so that all of these must be computed."""
        return self.router.routes_on != "inputs"

    @property
    def routed_columns(self) -> int:
        """Columns of what the router looks at."""
        return self.bottom.t if self.by_values else self.bottom.d

    @property
    def n_active(self) -> int:
        """The most units that an input switches on."""
        return self.router.n_active(self.routed_columns)

    def features(self, X: Array) -> Array:
        """Masked features (m, t) of rows (m, d): all at once, so for blocks of rows."""
        z = self.bottom.preactivations(X)
        if isinstance(self.router, TopK):
            chosen = kernels.top_k_masked(z, self.router.k, absolute=self.router.absolute)
            return self.bottom.activate(chosen)  # act(0) = 0
        mask = self.router.select(z if self.by_values else X, self.state).dense()
        phi = self.bottom.activate(z)
        phi *= mask
        return phi

    def active(self, X: Array) -> NDArray[np.bool_]:
        """Units that each row switches on, (m, t)."""
        on = np.empty((len(X), self.bottom.t), dtype=np.bool_)
        for block in self.blocks(len(X)):
            seen = self.bottom.preactivations(X[block]) if self.by_values else X[block]
            on[block] = self.router.select(seen, self.state).dense() != 0
        return on

    def values(self, X: Array, A: Array) -> Array:
        """Values (m, T) of the model with top layer A (T, t), block by block."""
        out = np.empty((len(X), len(A)))
        fused = self.bottom.activation == "identity" and len(A) == 1
        for block in self.blocks(len(X)):
            if fused and isinstance(self.router, TopK):
                z = self.bottom.preactivations(X[block])
                out[block] = kernels.top_k_dot(z, A, self.router.k, absolute=self.router.absolute)
            else:
                out[block] = self.features(X[block]) @ A.T
        return out

    def blocks(self, m: int) -> Iterator[slice]:
        """Slices of m rows whose features are made at once."""
        rows = max(1, VALUES_AT_ONCE // self.bottom.t)
        for start in range(0, m, rows):
            yield slice(start, min(start + rows, m))

    def difference(self, other: SparseLayer) -> str:
        """What sets two layers apart, in words; empty when they are the same."""
        if not self.bottom.same_as(other.bottom):
            return "bottom layers"
        if self.router != other.router:
            return "routers"
        same = self.state.keys() == other.state.keys() and all(
            np.array_equal(self.state[name], other.state[name]) for name in self.state
        )
        return "" if same else "states of their routers (hashes)"

    def flops(self, n_targets: int, *, routing: bool) -> int:
        """Multiplications and additions of one prediction: of the active units alone, or with their choice too."""
        of_a_unit = 2 * self.bottom.d + self.bottom.biased
        active = self.n_active * (of_a_unit + 2 * n_targets)
        if not routing:
            return active
        idle = (self.bottom.t - self.n_active) * of_a_unit if self.by_values else 0
        return active + idle + self.router.flops(self.routed_columns)
