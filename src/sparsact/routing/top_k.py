"""The k largest pre-activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsact import kernels
from sparsact.routing.array_functions import Array, integers, namespace, ones
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import check_bool, check_sizes


def largest(values: Array, k: int) -> Any:
    """Places (m, k), in increasing order, of the k largest values of each row; of equal values the first wins."""
    m, t = values.shape
    check_choice(k, t)
    if isinstance(values, np.ndarray):
        return kernels.top_k(np.ascontiguousarray(values, dtype=np.result_type(values.dtype, np.float32)), k)
    if k == t:
        return integers(t, values).expand(m, t)
    from sparsact.routing.operators import composed_top_k, has_top_k, top_k  # late: a tensor implies torch

    return top_k(values, k) if has_top_k(values) else composed_top_k(values, k)


@dataclass(frozen=True)
class TopK(Router):
    """Chooses the k units with the largest pre-activations, or absolute values; the first of equal ones.

    Parameters
    ----------
    n_active : int
        Active units.
    absolute : bool, default=False
        Rank by absolute value. The paper leaves this open (Appendix A.1).

    Examples
    --------
    >>> TopK(2)([[0.1, 3.0, -5.0, 2.0]]).indices
    array([[1, 3]])
    >>> TopK(2, absolute=True)([[0.1, 3.0, -5.0, 2.0]]).indices
    array([[1, 2]])
    """

    name: ClassVar[str] = "top_k"
    routes_on: ClassVar[str] = "features"
    n_active: int
    absolute: bool = False

    def __post_init__(self) -> None:
        check_sizes(self, "n_active")
        check_bool(self, "absolute")

    def width(self, in_features: int) -> int:
        """The features themselves; an error where they are fewer than k."""
        check_choice(self.n_active, in_features)
        return in_features

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The k largest of each row of features, with weight 1; the features are the logits."""
        places = largest(namespace(x).abs(x) if self.absolute else x, self.n_active)
        return Selection.of(places, ones(tuple(places.shape), x), x.shape[1], logits=x)

    def flops(self, in_features: int) -> int:
        """One comparison a unit, as a selection in linear time makes about; the features are the layer's own cost."""
        return in_features
