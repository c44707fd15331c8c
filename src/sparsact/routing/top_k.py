"""TopK: the k largest pre-activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sparsact.routing import hyperparameters
from sparsact.routing.largest import comparisons, largest
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection


@dataclass(frozen=True)
class TopK(Router):
    """The k units with the largest pre-activations; of equal ones the first wins.

    The mask of the data-dependent sparse model of [B]_ (Section 2.1, Appendix A). Weights are 1.

    Parameters
    ----------
    k : int
        Units that each input switches on.
    absolute : bool, default=False
        Rank by magnitude. [B]_ does not say which it does; for signed pre-activations they differ.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022.

    Examples
    --------
    >>> TopK(2)([[3.0, -9.0, 1.0, 3.0]]).indices
    array([[0, 3]])
    >>> TopK(2, absolute=True)([[3.0, -9.0, 1.0, 3.0]]).dense()
    array([[1., 1., 0., 0.]])
    """

    k: int
    absolute: bool = False

    name: ClassVar[str] = "top_k"
    routes_on: ClassVar[str] = "features"

    def __post_init__(self) -> None:
        hyperparameters.sizes(self, "k")
        hyperparameters.flag(self, "absolute")

    def width(self, in_features: int) -> int:
        """The columns themselves."""
        return in_features

    def n_active(self, in_features: int) -> int:
        """The k of the router."""
        return self.k

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """The k largest of each row of pre-activations ``x`` (m, width)."""
        return Selection.mask(largest(x, self.k, absolute=self.absolute), x.shape[1], dtype=x.dtype, logits=x)

    def flops(self, in_features: int) -> int:
        """Comparisons with a heap of k; the pre-activations are the layer's own."""
        return comparisons(in_features, self.k)
