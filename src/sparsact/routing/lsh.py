"""LSH routers, Euclidean and hyperplane, and the hashes that they select units by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import hashing
from sparsact.routing.array_functions import Array, constant, integers, namespace, ones, scores, sigmoid
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection
from sparsact.statistics.hashing import mixed as splitmix
from sparsact.validation.parameters import check_numbers, check_random_state, check_sizes

MAX_HYPERPLANES: Final = 30
_STEP, _FIRST, _SECOND = (int(c) - 2**64 for c in (hashing.STEP, hashing.FIRST, hashing.SECOND))  # as int64


# The hashes of kernels.hashing, for arrays and tensors: torch does not multiply unsigned words.


def shifted(h: Array, by: int) -> Any:
    """Logical shift to the right, ``by`` from 1 to 63."""
    return (h >> by) & ((1 << (64 - by)) - 1)


def finished(h: Array) -> Any:
    """The finaliser of splitmix64: every bit of the result depends on every bit of h."""
    h = (h ^ shifted(h, 30)) * _FIRST
    h = (h ^ shifted(h, 27)) * _SECOND
    return h ^ shifted(h, 31)


def mixed(h: Array, code: Array) -> Any:
    """One more code mixed into h."""
    h = (h ^ code) * _STEP
    return h ^ shifted(h, 32)


def numbered(n: int, salt: int, x: Array) -> Any:
    """A key (n,) for each of the numbers 0 to n - 1, by position and ``salt``, on the device of x."""
    keys = _keys(range(n).stop, range(salt).stop)  # a range makes plain numbers of torch.compile's symbols
    return namespace(x).asarray(keys, dtype=namespace(x).int64, device=x.device)


def _keys(n: int, salt: int) -> list[int]:
    words = splitmix(np.arange(n, dtype=np.uint64)) ^ splitmix(np.array([salt], dtype=np.uint64))
    keys: list[int] = hashing.finished(words).view(np.int64).tolist()
    return keys


# What torch._dynamo.assume_constant_result does, without loading torch: a compiled graph holds the keys themselves.
# Traced, their products would be signed overflow of known numbers in C++, and inductor's code gave other keys.
_keys._dynamo_marked_constant = True  # type: ignore[attr-defined] # a function takes any attribute


@dataclass(frozen=True)
class HyperplaneLSH(Router):
    r"""Sign patterns of random hyperplanes (Section 2.2): one of :math:`2^m` units in each of s tables.

    Bit i of a bucket's number is 1 where :math:`\langle a_i, x \rangle > 0`; on a hyperplane it is 0. The normals are
    standard normal, so inputs at angle :math:`\theta` share a bit with probability :math:`1 - \theta/\pi`.

    Parameters
    ----------
    n_hashes : int
        Number m of hyperplanes per table, at most 30.
    n_tables : int, default=1
        Tables, s.
    random_state : int, default=0
        Seed of the normals; used if no state is given.

    Examples
    --------
    Only the direction of an input counts:

    >>> selection = HyperplaneLSH(n_hashes=3, n_tables=2)(np.array([[1.0, 2.0], [10.0, 20.0], [-1.0, -2.0]]))
    >>> chosen = selection.indices
    >>> selection.n_units, bool((chosen[0] == chosen[1]).all()), bool((chosen[0] == chosen[2]).any())
    (16, True, False)
    """

    name: ClassVar[str] = "hyperplane_lsh"
    state_names: ClassVar[tuple[str, ...]] = ("directions",)
    n_hashes: int
    n_tables: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_hashes", "n_tables")
        check_random_state(self)
        if self.n_hashes > MAX_HYPERPLANES:
            raise ValueError(f"`n_hashes` must be at most {MAX_HYPERPLANES}, because a table has 2**n_hashes units.")

    def width(self, in_features: int) -> int:
        """Units of all tables."""
        return int(self.n_tables * 2**self.n_hashes)

    def max_active(self, in_features: int) -> int:
        """One per table."""
        return self.n_tables

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``directions`` (tables, hashes, in_features): normals of the hyperplanes."""
        return {"directions": rng.normal(size=(self.n_tables, self.n_hashes, in_features))}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The bucket of each table, with weight 1; the projections (m, tables, hashes) are the logits."""
        xp = namespace(x)
        projections = _projected(x, state["directions"])
        bits = xp.astype(projections > 0, xp.int64)
        places = xp.bitwise_left_shift(xp.ones_like(integers(self.n_hashes, x)), integers(self.n_hashes, x))
        units = xp.sum(bits * places, axis=-1) + integers(self.n_tables, x) * 2**self.n_hashes
        return Selection.of(units, ones(tuple(units.shape), x), self.width(x.shape[1]), logits=projections)

    def flops(self, in_features: int) -> int:
        """A product of ``in_features`` for each hyperplane, and its comparison."""
        return self.n_tables * self.n_hashes * 2 * in_features


class LearnedLSH(HyperplaneLSH):
    r"""Sign patterns of hyperplanes that training moves.

    The bucket of an input is that of :class:`HyperplaneLSH`, with weight 1. In training the weight has the gradient of
    the bucket's probability :math:`\prod_i \sigma(|\langle a_i, x \rangle|)`, where each bit is 1 with probability
    :math:`\sigma(\langle a_i, x \rangle)`: a straight-through estimator, as :class:`BlockTop1` has. At first, normals
    have variance 1 / in_features.

    Examples
    --------
    >>> LearnedLSH(2)([[3.0, -1.0]], {"directions": np.array([[[1.0, 0.0], [0.0, 1.0]]])}).indices.tolist()
    [[1]]
    """

    name: ClassVar[str] = "learned_lsh"
    trainable: ClassVar[tuple[str, ...]] = ("directions",)

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``directions`` (tables, hashes, in_features): normals of the hyperplanes."""
        return {"directions": in_features**-0.5 * super().initial_state(in_features, rng=rng)["directions"]}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The bucket of each table; the projections (m, tables, hashes) are the logits."""
        chosen = super().select(x, state, training=training)
        if not training:
            return chosen
        xp = namespace(x)
        each = sigmoid(xp.abs(chosen.logits))
        probabilities = each[:, :, 0]
        for i in range(1, self.n_hashes):  # torch.prod asks the device for zeros when it is differentiated
            probabilities = probabilities * each[:, :, i]
        straight = xp.astype(probabilities - constant(probabilities), x.dtype)
        return replace(chosen, weights=chosen.weights + straight)


@dataclass(frozen=True)
class EuclideanLSH(Router):
    r"""Random projections cut into intervals (Datar et al., 2004; Section 2.2): one unit in each table.

    A bucket is the vector of :math:`\lfloor (\langle a_i, x \rangle + b_i) / w \rfloor`, with standard normal
    :math:`a_i` and :math:`b_i` uniform on [0, w]; a mixture of its bits names one of ``n_buckets`` units. Two buckets
    share a unit with probability 1 / n_buckets: :class:`sparsact.LSHRegressor` has a table that grows instead.

    Parameters
    ----------
    n_hashes : int
        Projections per table.
    bucket_width : float
        Width w of the intervals, in units of x.
    n_tables, n_buckets : int, default=1 and 1024
        Number of tables, and of units per table.
    random_state : int, default=0
        Seed of the projections; used if no state is given.

    Examples
    --------
    Inputs that are much nearer than the width share a bucket, most of the time:

    >>> x = np.random.default_rng(0).normal(size=(500, 4))
    >>> router = EuclideanLSH(n_hashes=2, bucket_width=5.0, n_buckets=64)
    >>> float(np.mean(router(x).indices == router(x + 0.01).indices)) > 0.95
    True
    """

    name: ClassVar[str] = "euclidean_lsh"
    state_names: ClassVar[tuple[str, ...]] = ("directions", "offsets")
    n_hashes: int
    bucket_width: float
    n_tables: int = 1
    n_buckets: int = 1024
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_hashes", "n_tables", "n_buckets")
        check_numbers(self, "bucket_width", positive=True)
        check_random_state(self)

    def width(self, in_features: int) -> int:
        """Units of all tables."""
        return self.n_tables * self.n_buckets

    def max_active(self, in_features: int) -> int:
        """One per table."""
        return self.n_tables

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``directions`` (tables, hashes, in_features), and ``offsets`` (tables, hashes) in [0, bucket_width]."""
        shape = (self.n_tables, self.n_hashes)
        return {
            "directions": rng.normal(size=(*shape, in_features)),
            "offsets": rng.uniform(0.0, self.bucket_width, shape),
        }

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The bucket of each table, with weight 1; the projections (m, tables, hashes) in cells are the logits."""
        xp = namespace(x)
        cells = (_projected(x, state["directions"]) + state["offsets"]) / self.bucket_width
        codes = xp.astype(xp.clip(xp.floor(xp.astype(cells, xp.float64)), -(2.0**62), 2.0**62), xp.int64)
        tables = integers(self.n_tables, x)
        keys = xp.broadcast_to(numbered(self.n_tables, 0, x), (x.shape[0], self.n_tables))
        for j in range(self.n_hashes):
            keys = mixed(keys, codes[:, :, j])
        units = shifted(finished(keys), 1) % self.n_buckets + tables * self.n_buckets
        return Selection.of(units, ones(tuple(units.shape), x), self.width(x.shape[1]), logits=cells)

    def flops(self, in_features: int) -> int:
        """A product of ``in_features`` for each projection, its shift, division and floor."""
        return self.n_tables * self.n_hashes * (2 * in_features + 2)


def _projected(x: Array, directions: Array) -> Any:
    """<a, x> for each table and hash, (m, tables, hashes)."""
    xp = namespace(x)
    n_tables, n_hashes, d = directions.shape
    flat = xp.reshape(directions, (n_tables * n_hashes, d))
    return xp.reshape(scores(x, flat), (x.shape[0], n_tables, n_hashes))
