"""The routers that a data-dependent sparse model makes from its own parameters, by name."""

from __future__ import annotations

from typing import Any

from sparsact.learners.dsm.seeds import stream
from sparsact.routing import ROUTERS, RandomHash, Router, TopK

NAMES = ("top_k", "random_hash")


def router_of(router: str | Router, width: int, n_active: int, *, absolute: bool, seed: tuple[int, ...]) -> Router:
    """The router of that name, or the router itself."""
    if absolute and router != TopK.name:
        raise ValueError(f'`absolute` ranks the values of router="top_k"; leave it out for {router!r}.')
    if isinstance(router, Router):
        return router
    if n_active > width:
        raise ValueError(f"`n_active` is {n_active}, more than the {width} units of `width`; lower it or widen.")
    if router == TopK.name:
        return TopK(n_active, absolute)
    return RandomHash(n_active, width, seed=int(stream(seed, "router").integers(2**62)))


def to_dict(router: Router) -> dict[str, Any]:
    """A router as JSON spells it, if :func:`sparsact.routing.from_dict` can read that back."""
    if type(router) is not ROUTERS.get(router.name):
        raise ValueError(f"a file can hold a router of {sorted(ROUTERS)}; {router!r} is none: pickle the model.")
    return router.to_dict()
