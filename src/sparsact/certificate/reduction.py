r"""Fewer states than points: what of an input the units can tell apart.

A pre-activation is :math:`\sum_f r_f\, v_f - b` over *features* :math:`v_f = c_f - 2 t_f`, where
:math:`t_f \in \{0, \ldots, c_f\}`:

- over the cube (:class:`~sparsact.certificate.orbits.Orbits`), coordinates whose columns of W are equal up to sign form
  a group, and only the sum of their signs matters: one feature a group of :math:`c_f` coordinates, hence
  :math:`\prod_f (c_f + 1)` states for 2**n points;
- over a lift (:class:`~sparsact.certificate.characters.Characters`), a feature is a product of coordinates of y, and
  there are 2**m states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.exact_sign import Weights


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
