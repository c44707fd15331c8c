"""The routers that a data-dependent sparse model knows by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsact import kernels
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection

ROUTERS = ("top_k",)


@dataclass(frozen=True)
class TopK(Router):
    """PLACEHOLDER until routing lands."""

    k: int
    absolute: bool = False
    name: ClassVar[str] = "top_k"
    routes_on: ClassVar[str] = "preactivations"

    def width(self, in_features: int) -> int:
        return in_features

    def n_active(self, in_features: int) -> int:
        return self.k

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        places = kernels.top_k(x, self.k, absolute=self.absolute)
        counts = np.bincount(places.ravel(), minlength=x.shape[1])
        return Selection(places, np.ones(places.shape), x, 0.0, counts, np.zeros(len(x), dtype=bool))

    def flops(self, in_features: int) -> int:
        return in_features


def router_of(router: str | Router, width: int, n_active: int, *, absolute: bool) -> Router:
    """The router of that name, or the router itself."""
    if absolute and router != "top_k":
        raise ValueError(f'`absolute` ranks the values of router="top_k"; leave it out for {router!r}.')
    if isinstance(router, Router):
        return router
    if n_active > width:
        raise ValueError(f"`n_active` is {n_active}, more than the {width} units of `width`; lower it or widen.")
    return TopK(n_active, absolute)


def from_dict(d: dict[str, Any]) -> Router:
    """PLACEHOLDER until routing lands."""
    d = dict(d)
    assert d.pop("router") == "top_k"
    return TopK(**d)
