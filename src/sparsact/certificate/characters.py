"""The image of a lift, through the products of coordinates that it consists of."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.certificate.reduction import Reduction, Variables
from sparsact.exact_sign import Weights
from sparsact.hypercube import bits_to_signs, masks_of
from sparsact.lift import Lift


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
        weights: Any = W @ self.merge
        return weights.toarray() if isinstance(weights, sp.csr_array) else np.asarray(weights)

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
