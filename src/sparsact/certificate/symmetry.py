r"""Reductions of the cube: fewer states than points, where the units cannot tell points apart.

A pre-activation is :math:`\sum_f r_f\, v_f - b` over *features* :math:`v_f = c_f - 2 t_f`, where
:math:`t_f \in \{0, \ldots, c_f\}`:

- over the cube, coordinates whose columns of W are equal up to sign form
  a group, and only the sum of their signs matters: one feature a group of :math:`c_f` coordinates, hence
  :math:`\prod_f (c_f + 1)` states for 2**n points;
- over a lift, a feature is a product of coordinates of y, and
  there are 2**m states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import comb, prod
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.certificate.inputs import Inputs
from sparsact.exact_sign import Weights, dense
from sparsact.hypercube import bits_to_signs, masks_of
from sparsact.lift import Lift


@dataclass(frozen=True, eq=False)
class Variables:
    """For a mixed-integer program: integers ``0 <= t <= most``, their rows, and where each feature's t stands."""

    most: NDArray[np.float64]
    integral: NDArray[np.bool_]
    rows: sp.csr_array
    right: NDArray[np.float64]  # rows @ t <= right
    of_feature: NDArray[np.intp]


class Reduction(ABC):
    """Features of the inputs, numbered states, and the points behind them."""

    weights: NDArray[np.float64]  # (s, F), of the network
    normals: NDArray[np.float64]  # (q, F), of the constraints
    counts: NDArray[np.int64]  # (F,)
    n_states: int

    @abstractmethod
    def reduced(self, W: Weights) -> NDArray[np.float64]:
        """Weights (s, F) on the features, for weights (s, n) on the inputs that are no finer than the network's."""

    @abstractmethod
    def features(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Values of the features at numbered states, (len, F)."""

    @abstractmethod
    def points(self, states: NDArray[np.int64]) -> NDArray[np.int8]:
        """One input behind each numbered state, (len, n)."""

    @abstractmethod
    def multiplicities(self, states: NDArray[np.int64]) -> NDArray[Any] | None:
        """How many inputs stand behind each state, as int64 or Python integers; None where that is too much work."""

    @abstractmethod
    def variables(self) -> Variables:
        """The states as integers that linear inequalities describe."""

    @abstractmethod
    def point(self, t: NDArray[np.float64]) -> NDArray[np.int8]:
        """The input (n,) behind values of the variables."""


BIG_COUNTS_AT_MOST: Final = 2**16  # states whose multiplicities are counted in Python integers


class Orbits(Reduction):
    """The cube up to permutations and sign changes that no unit and no constraint notices."""

    def __init__(self, W: Weights, inputs: Inputs, *, merge: bool = True) -> None:
        stacked = sp.csc_array(sp.vstack([sp.csr_array(W), sp.csr_array(inputs.normals)]))
        stacked.eliminate_zeros()
        stacked.sort_indices()
        n = inputs.n
        self.group, self.sign = np.full(n, -1), np.ones(n, dtype=np.int8)
        self.rank, counts = np.zeros(n, dtype=np.int64), list[int]()
        first, known = list[int](), dict[object, int]()
        for i in range(n):
            here = slice(stacked.indptr[i], stacked.indptr[i + 1])
            if merge and here.start == here.stop:
                continue  # no unit sees it: +1 will do
            column = stacked.data[here]
            self.sign[i] = -1 if merge and column[0] < 0 else 1
            key = (stacked.indices[here].tobytes(), (column * self.sign[i]).tobytes()) if merge else i
            group = known.setdefault(key, len(counts))
            if group == len(counts):
                counts.append(0)
                first.append(i)
            self.group[i], self.rank[i] = group, counts[group]
            counts[group] += 1
        self.counts = np.array(counts, dtype=np.int64)
        self.first = np.array(first, dtype=np.intp)
        self.weights, self.normals = self.reduced(W), self.reduced(inputs.normals)
        self.unseen = n - sum(counts)
        self.n_states = prod(count + 1 for count in counts)

    def reduced(self, W: Weights) -> NDArray[np.float64]:
        """The columns of one coordinate a group."""
        return np.asarray(dense(W[:, self.first]) * self.sign[self.first], dtype=np.float64)

    def _flipped(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many coordinates of each group are negative (before signs), (len, F)."""
        flipped = np.empty((len(states), len(self.counts)), dtype=np.int64)
        for f, radix in enumerate((self.counts + 1).tolist()):
            states, flipped[:, f] = np.divmod(states, radix)
        return flipped

    def features(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sums of the signs of each group."""
        return (self.counts - 2 * self._flipped(states)).astype(np.float64)

    def points(self, states: NDArray[np.int64]) -> NDArray[np.int8]:
        """The first coordinates of each group negative, as many as the state says."""
        return self._points(self._flipped(states))

    def _points(self, flipped: NDArray[np.int64]) -> NDArray[np.int8]:
        none = np.zeros((len(flipped), 1), dtype=np.int64)  # for coordinates of group -1
        negative = self.rank < np.concatenate([flipped, none], axis=1)[:, self.group]
        return self.sign * bits_to_signs(negative)

    def multiplicities(self, states: NDArray[np.int64]) -> NDArray[Any] | None:
        """Products of binomial coefficients, times 2 for each coordinate that no unit sees."""
        dtype: Any = np.int64 if len(self.group) <= 62 else np.object_
        if dtype == np.object_ and self.n_states > BIG_COUNTS_AT_MOST:
            return None
        total: NDArray[Any] = np.full(len(states), 2**self.unseen, dtype=dtype)
        flipped = self._flipped(states)
        for f, count in enumerate(self.counts.tolist()):
            total *= np.array([comb(count, t) for t in range(count + 1)], dtype=dtype)[flipped[:, f]]
        return total

    def variables(self) -> Variables:
        """How many of each group are negative; nothing ties the groups together."""
        size = len(self.counts)
        return Variables(
            self.counts.astype(np.float64), np.ones(size, bool), sp.csr_array((0, size)), np.zeros(0), np.arange(size)
        )

    def point(self, t: NDArray[np.float64]) -> NDArray[np.int8]:
        """The input with this many negative coordinates in each group."""
        return np.asarray(self._points(np.rint(t).astype(np.int64)[None])[0])


class Characters(Reduction):
    """The image of a lift; one feature a distinct subset of the coordinates of y."""

    def __init__(self, W: Weights, lift: Lift) -> None:
        self.lift = lift
        self.subsets = sorted(set(lift.subsets), key=lambda subset: (len(subset), subset))
        place = {subset: f for f, subset in enumerate(self.subsets)}
        self.feature = np.array([place[subset] for subset in lift.subsets])
        self.merge = sp.csr_array((np.ones(lift.n), (np.arange(lift.n), self.feature)), shape=(lift.n, len(place)))
        self.weights = self.reduced(W)
        self.normals = np.zeros((0, len(place)))
        self.counts = np.ones(len(place), dtype=np.int64)
        self.n_states = 2**lift.m

    def reduced(self, W: Weights) -> NDArray[np.float64]:
        """Sums of the columns of like subsets."""
        return dense(W @ self.merge)

    def features(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """Products of coordinates of y; bit i of a state's number is bit i of y."""
        masks = masks_of(self.subsets, self.lift.m)[:, 0]
        parity = np.bitwise_count(states.astype(np.uint64)[:, None] & masks) & 1
        return np.asarray(1.0 - 2.0 * parity)

    def points(self, states: NDArray[np.int64]) -> NDArray[np.int8]:
        """The lifted point x(y) of each y."""
        return self.features(states)[:, self.feature].astype(np.int8)

    def multiplicities(self, states: NDArray[np.int64]) -> NDArray[Any] | None:
        """One y a state, whatever other y have the same x(y)."""
        return np.ones(len(states), dtype=np.int64)

    def variables(self) -> Variables:
        r"""Bits of y, and a variable p = q xor r for each product: q - r <= p <= q + r, r - q <= p <= 2 - q - r."""
        place: dict[tuple[int, ...], int] = {(i,): i for i in range(self.lift.m)}
        rows, right = list[dict[int, float]](), list[float]()
        for subset in self.subsets:
            for size in range(2, len(subset) + 1):
                if subset[:size] in place:
                    continue
                q, r, p = place[subset[: size - 1]], subset[size - 1], len(place)
                place[subset[:size]] = p
                rows += [{p: 1, q: -1, r: -1}, {p: -1, q: 1, r: -1}, {p: -1, q: -1, r: 1}, {p: 1, q: 1, r: 1}]
                right += [0, 0, 0, 2]
        most, constant = np.ones(len(place) + 1), len(place)
        most[constant] = 0  # the empty product is 1 at every point
        matrix: Any = sp.lil_array((len(rows), len(most)))
        for row, terms in enumerate(rows):
            matrix[row, list(terms)] = list(terms.values())
        of_feature = np.array([place.get(subset, constant) for subset in self.subsets])
        return Variables(
            most, np.arange(len(most)) < self.lift.m, sp.csr_array(matrix), np.array(right, dtype=float), of_feature
        )

    def point(self, t: NDArray[np.float64]) -> NDArray[np.int8]:
        """The lifted point of the y that the first m variables spell."""
        y = bits_to_signs(np.rint(t[: self.lift.m]).astype(np.int64))
        return np.asarray(self.lift(y[None])[0])
