"""The cube up to what no unit can tell apart: only the sum of each group of like coordinates matters."""

from __future__ import annotations

from math import comb, prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.certificate.inputs import Inputs
from sparsact.certificate.reduction import Reduction, Variables
from sparsact.exact_sign import Weights
from sparsact.hypercube import bits_to_signs

BIG_COUNTS_AT_MOST = 2**16  # states whose multiplicities are counted in Python integers


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
        columns: Any = W[:, self.first]
        columns = columns.toarray() if isinstance(columns, sp.csr_array) else columns
        return np.asarray(columns * self.sign[self.first], dtype=np.float64)

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
        """The input with so many negative coordinates in each group."""
        return np.asarray(self._points(np.rint(t).astype(np.int64)[None])[0])
