"""The routers that a data-dependent sparse model knows by name, and that its file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsact import kernels
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection


@dataclass(frozen=True)
class TopK(Router):
    """The k units of largest pre-activation (or size of it); of equal ones the first.

    Attributes
    ----------
    k : int
        Units that an input switches on.
    absolute : bool
        Rank by absolute value.
    """

    k: int
    absolute: bool = False
    name: ClassVar[str] = "top_k"
    routes_on: ClassVar[str] = "preactivations"

    def width(self, in_features: int) -> int:
        """All that it looks at."""
        return in_features

    def n_active(self, in_features: int) -> int:
        """K of them."""
        return self.k

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """Units in increasing order, each with weight 1."""
        places = kernels.top_k(x, self.k, absolute=self.absolute)
        counts = np.bincount(places.ravel(), minlength=x.shape[1])
        return Selection(places, np.ones(places.shape), x, 0.0, counts, np.zeros(len(x), dtype=bool))

    def flops(self, in_features: int) -> int:
        """One comparison each, with the k-th largest; to find it takes a few more."""
        return in_features


ROUTERS = {TopK.name: TopK}


def router_of(router: str | Router, width: int, n_active: int, *, absolute: bool) -> Router:
    """The router of that name, or the router itself."""
    if absolute and router != TopK.name:
        raise ValueError(f'`absolute` ranks the values of router="top_k"; leave it out for {router!r}.')
    if isinstance(router, Router):
        return router
    if n_active > width:
        raise ValueError(f"`n_active` is {n_active}, more than the {width} units of `width`; lower it or widen.")
    return TopK(n_active, absolute)


def to_dict(router: Router) -> dict[str, Any]:
    """A router as JSON spells it."""
    if type(router) is not ROUTERS.get(router.name):
        raise ValueError(f"a file can hold a router of {sorted(ROUTERS)}; {router!r} is none: pickle the model.")
    return router.to_dict()


def from_dict(state: dict[str, Any]) -> Router:
    """The router that :func:`to_dict` spelled."""
    parameters = dict(state)
    return ROUTERS[parameters.pop("router")](**parameters)
