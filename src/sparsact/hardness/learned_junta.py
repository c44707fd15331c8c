"""A function of few variables as a value: what learning a junta returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.checks import checked_signs
from sparsact.constructions import junta
from sparsact.fourier import Spectrum
from sparsact.hardness.junta_search import Work
from sparsact.hypercube import Subset
from sparsact.network import SparselyActivatedNetwork


@dataclass(frozen=True, eq=False)
class LearnedJunta:
    """A function of few variables that has all labels.

    Attributes
    ----------
    variables : tuple of int
        Those on which it depends, sorted.
    table : ndarray of shape (2 ** len(variables),)
        Its values +-1, in table order over ``variables``.
    n : int
        Number of coordinates of a point.
    work : Work
        What the search has cost: correlations, unknowns, words.
    """

    variables: Subset
    table: NDArray[np.float64]
    n: int
    work: Work

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (rows,) at the rows of ``X``, signs (rows, n)."""
        return self.table[places(checked_signs(X, self.n), self.variables)]

    def network(self) -> SparselyActivatedNetwork:
        """The same function as a one-sparse network (:func:`sparsact.constructions.junta`)."""
        return junta(self.table, self.variables, self.n)

    def __spectrum__(self) -> Spectrum:
        coefficients = Spectrum.of(self.table).items()
        named = {tuple(self.variables[i] for i in subset): value for subset, value in coefficients}
        return Spectrum.of(named, n=self.n)


def tabulated(points: NDArray[Any], labels: NDArray[Any], variables: Subset, work: Work) -> LearnedJunta:
    """The labels, a function of the variables, as a table over those on which it depends."""
    table = np.zeros(2 ** len(variables))
    table[places(points, variables)] = labels
    if not table.all():
        raise ValueError(f"no example shows some assignment of the variables {variables}; pass uniform examples.")
    for i in reversed(range(len(variables))):
        without, holding = np.moveaxis(table.reshape(-1, 2, 2**i), 1, 0)
        if np.array_equal(without, holding):
            table, variables = without.ravel(), variables[:i] + variables[i + 1 :]
    return LearnedJunta(variables, table, points.shape[1], work)


def places(points: NDArray[Any], variables: Subset) -> NDArray[np.intp]:
    """Where each point stands in a table over the variables."""
    return np.asarray((points[:, list(variables)] < 0) @ (1 << np.arange(len(variables))), dtype=np.intp)
