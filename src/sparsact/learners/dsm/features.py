"""Masked features: the frozen bottom layer, the router that masks its units, and the random streams of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sparsact import kernels
from sparsact.kernels.dispatch import blas_threads
from sparsact.routing import ROUTERS, BlockTop1, HyperplaneLSH, Nearest, RandomHash, Router, TopK
from sparsact.saving.schema import Arrays, check_array
from sparsact.statistics.centred import about_mean

_STREAMS: Final = ("bottom", "router", "top", "order")
Array = NDArray[np.float64]
VALUES_AT_ONCE: Final = 2**18  # of a block of rows: they stay in the cache
NAMES: Final = ("top_k", "random_hash", "nearest", "block_top1", "hyperplane_lsh")


def entropy(random_state: int | np.random.RandomState | None) -> tuple[int, ...]:
    """What all streams of a model follow from; scikit-learn's None means a fresh one, not the global state."""
    if random_state is None:
        return tuple(int(word) for word in np.random.SeedSequence().generate_state(4))
    return tuple(check_random_state(random_state).randint(2**31 - 1, size=4).tolist())


def stream(seed: tuple[int, ...], name: str, place: int = 0) -> np.random.Generator:
    """Random generator of one purpose; ``place`` numbers generators of the same name."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(name), place)))


@dataclass(frozen=True, eq=False)
class Bottom:
    r"""Pre-activations :math:`z = B (x - \bar x) + c` of t units; :math:`\phi(x) = \operatorname{act}(z)`.

    Attributes
    ----------
    B : ndarray of shape (t, d)
        Weights, a unit a row.
    c : ndarray of shape (t,)
        Biases; zeros for a layer without.
    activation : {"identity", "relu"}
        Activation of every unit.
    centre : ndarray of shape (d,)
        What is taken off the inputs, :math:`\bar x`: the mean of the rows, or zeros, as in the paper.
    """

    B: Array
    c: Array
    activation: str
    centre: Array

    @classmethod
    def random(cls, d: int, t: int, *, bias: bool, activation: str, rng: np.random.Generator) -> Self:
        r"""Glorot's uniform weights within :math:`\pm\sqrt{6 / (d + t)}`, and biases likewise or none; about zero."""
        limit = np.sqrt(6 / (d + t))
        B = rng.uniform(-limit, limit, size=(t, d))
        return cls(B, rng.uniform(-limit, limit, size=t) if bias else np.zeros(t), activation, np.zeros(d))

    @classmethod
    def principal(
        cls, X: Array, weights: Array, t: int, *, bias: bool, activation: str, rng: np.random.Generator
    ) -> Self:
        r"""Directions :math:`b \sim \mathcal{N}(0, C)` up to scale, over the covariance C of the rows.

        So b is a sum of principal components, each with a normal weight in proportion to the standard deviation along
        it: where the rows do not vary no unit looks. Pre-activations are centred and scaled to have variance 1 on
        average: the layer does not depend on where the rows lie or on their unit, nor (in distribution) on how they
        are rotated. Biases, if any, are uniform within :math:`\pm 1`.
        """
        shares = weights / weights.sum()
        mean, centred = about_mean(X, shares, 1.0)
        centred *= np.sqrt(shares)[:, None]
        size = float(np.abs(centred).max(initial=0.0)) or 1.0  # squares neither overflow nor vanish
        spread, components = np.linalg.eigh((centred / size).T @ (centred / size))
        s = np.sqrt(np.maximum(spread, 0.0))
        scale = size * float(np.linalg.norm(s**2)) or 1.0
        # The symmetric root of C: no sign or basis of the components, which rounding may change, enters the layer.
        B = rng.normal(size=(t, len(s))) @ ((components * (s / scale)) @ components.T)
        c = rng.uniform(-1, 1, size=t) if bias else np.zeros(t)
        return cls(B, c, activation, mean)

    def about(self, X: Array, weights: Array) -> Self:
        """The same units about the mean of rows."""
        return replace(self, centre=about_mean(X, weights / weights.sum(), 1.0)[0])

    @property
    def t(self) -> int:
        """Number of units."""
        return len(self.B)

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.B.shape[1])

    @property
    def biased(self) -> bool:
        """Whether any unit has a bias."""
        return bool(self.c.any())

    def preactivations(self, X: Array) -> Array:
        """Z (m, t), C-contiguous."""
        with blas_threads(X.size * len(self.B)):
            z: Array = (X - self.centre) @ self.B.T
        if self.biased:
            z += self.c
        return z

    def activate(self, z: Array) -> Array:
        """Phi (m, t) of pre-activations, which are overwritten."""
        return np.maximum(z, 0.0, out=z) if self.activation == "relu" else z


@dataclass(frozen=True, eq=False)
class SparseLayer:
    r""":math:`\operatorname{mask}(x) \circ \phi(x)`, with the mask that a router chooses.

    Attributes
    ----------
    bottom : Bottom
        phi.
    router : Router
        Chooses by pre-activations, as top-k does, or by the inputs about the centre; a random hash by them as they are.
    state : dict of arrays
        What the router needs beyond its parameters.
    """

    bottom: Bottom
    router: Router
    state: dict[str, NDArray[Any]]

    @classmethod
    def from_arrays(cls, bottom: Bottom, router: Router, arrays: Arrays) -> Self:
        """The layer with its router's state from a file, which must be as the router would draw it."""
        layer = cls(bottom, router, {})
        columns = layer.routed_columns
        check_router(router, columns, bottom.t)
        drawn = router.initial_state(columns, rng=cast("np.random.Generator", _Zeros()))
        for name, array in drawn.items():
            layer.state[name] = check_array(arrays, f"router.{name}", np.float64, array.shape)
        if not all(np.isfinite(array).all() for array in layer.state.values()):
            raise ValueError(f"the state of {router!r} is not finite")
        return layer

    @property
    def by_values(self) -> bool:
        """Whether units are chosen by their pre-activations, so that all of these must be computed."""
        return self.router.routes_on != "inputs"

    @property
    def routed_columns(self) -> int:
        """Number of columns that the router reads."""
        return self.bottom.t if self.by_values else self.bottom.d

    def _inputs(self, X: Array) -> Array:
        """Inputs about the centre; for a hash of bits as they are, because rounding turns bits."""
        return X if isinstance(self.router, RandomHash) else X - self.bottom.centre

    @property
    def n_active(self) -> int:
        """The most units that an input switches on."""
        return self.router.max_active(self.routed_columns)

    def features(self, X: Array) -> Array:
        """Masked features (m, t) of rows (m, d): all at once, so for blocks of rows."""
        z = self.bottom.preactivations(X)
        if isinstance(self.router, TopK):
            chosen = kernels.top_k_masked(z, self.router.n_active, absolute=self.router.absolute)
            return self.bottom.activate(chosen)  # act(0) = 0
        mask = self.router.select(z if self.by_values else self._inputs(X), self.state).dense()
        phi = self.bottom.activate(z)
        phi *= mask
        return phi

    def active(self, X: Array) -> NDArray[np.bool_]:
        """Units that each row switches on, (m, t)."""
        on = np.empty((len(X), self.bottom.t), dtype=np.bool_)
        for block in self.blocks(len(X)):
            seen = self.bottom.preactivations(X[block]) if self.by_values else self._inputs(X[block])
            on[block] = self.router.select(seen, self.state).dense() != 0
        return on

    def values(self, X: Array, A: Array) -> Array:
        """Values (m, T) of the model with top layer A (T, t), block by block."""
        out = np.empty((len(X), len(A)))
        fused = self.bottom.activation == "identity" and len(A) == 1
        for block in self.blocks(len(X)):
            if fused and isinstance(self.router, TopK):
                z = self.bottom.preactivations(X[block])
                out[block] = kernels.top_k_dot(z, A, self.router.n_active, absolute=self.router.absolute)
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
        if not _alike(vars(self.bottom), vars(other.bottom)):
            return "bottom layers"
        if self.router != other.router:
            return "routers"
        return "" if _alike(self.state, other.state) else "states of their routers (hashes)"

    def flops(self, n_targets: int, *, routing: bool) -> int:
        """Multiplications and additions of one prediction: of the active units alone, or with their choice too."""
        of_a_unit = 2 * self.bottom.d + self.bottom.biased
        active = self.n_active * (of_a_unit + 2 * n_targets)
        if not routing:
            return active
        idle = (self.bottom.t - self.n_active) * of_a_unit if self.by_values else 0
        return active + idle + self.bottom.d * bool(self.bottom.centre.any()) + self.router.flops(self.routed_columns)


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(value, other[name]) for name, value in one.items())


def check_router(router: Router, columns: int, n_units: int) -> None:
    """Refuse a router that, at this number of columns, does not choose among these units."""
    if router.width(columns) != n_units:
        raise ValueError(
            f"`router` chooses among {router.width(columns)} units and `n_units` is {n_units}; make them equal."
        )
    if (most := router.max_active(columns)) > n_units:
        raise ValueError(f"`router` switches on {most} of {n_units} units; lower that number, or raise `n_units`.")


def router_of(router: str | Router, n_units: int, n_active: int, *, absolute: bool, seed: tuple[int, ...]) -> Router:
    """Make a router by its name, or return the router itself."""
    if absolute and router != TopK.name:
        raise ValueError(f'`absolute` ranks the values of router="top_k"; leave it out for {router!r}.')
    if isinstance(router, Router):
        return router
    if n_active > n_units:
        raise ValueError(f"`n_active` is {n_active}, more than `n_units` = {n_units}; lower it or raise `n_units`.")
    if router == TopK.name:
        return TopK(n_active, absolute)
    drawn = int(stream(seed, "router").integers(2**62))
    if router == RandomHash.name:
        return RandomHash(n_active, n_units, random_state=drawn)
    if router == Nearest.name:
        return Nearest(n_active, n_units, random_state=drawn)
    block = n_units // n_active
    if block * n_active != n_units or (router == HyperplaneLSH.name and block & (block - 1)):
        power = ", times a power of two" if router == HyperplaneLSH.name else ""
        raise ValueError(
            f'router="{router}" needs an `n_units` that is a multiple of `n_active`{power}; got {n_units}, {n_active}.'
        )
    if router == BlockTop1.name:
        return BlockTop1(n_active, block, random_state=drawn)
    return HyperplaneLSH(max(1, block.bit_length() - 1), n_active, random_state=drawn)


class _Zeros:
    """A stand-in for a generator where only shapes are needed: it draws zeros that take no memory."""

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: tuple[int, ...] = ()) -> Array:
        return np.broadcast_to(0.0, size)

    uniform = normal


def to_dict(router: Router) -> dict[str, Any]:
    """A router as JSON spells it, if :func:`sparsact.routing.from_dict` can read that back."""
    if type(router) is not ROUTERS.get(router.name):
        raise ValueError(f"a file can hold a router of {sorted(ROUTERS)}, not {router!r}: pickle the model.")
    return router.to_dict()
