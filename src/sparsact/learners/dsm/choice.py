"""The routers that a data-dependent sparse model makes from its own parameters, by name."""

from __future__ import annotations

from typing import Any

from sparsact.learners.dsm.seeds import stream
from sparsact.routing import ROUTERS, BlockTop1, HyperplaneLSH, Nearest, RandomHash, Router, TopK

NAMES = ("top_k", "random_hash", "nearest", "block_top1", "hyperplane_lsh")


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
    drawn = int(stream(seed, "router").integers(2**62))
    if router == RandomHash.name:
        return RandomHash(n_active, width, seed=drawn)
    if router == Nearest.name:
        return Nearest(n_active, width, seed=drawn)
    block = width // n_active
    if block * n_active != width or (router == HyperplaneLSH.name and block & (block - 1)):
        power = ", times a power of two" if router == HyperplaneLSH.name else ""
        raise ValueError(
            f'router="{router}" needs a `width` that is a multiple of `n_active`{power}; got {width}, {n_active}.'
        )
    if router == BlockTop1.name:
        return BlockTop1(n_active, block, seed=drawn)
    return HyperplaneLSH(max(1, block.bit_length() - 1), n_active, seed=drawn)


def to_dict(router: Router) -> dict[str, Any]:
    """A router as JSON spells it, if :func:`sparsact.routing.from_dict` can read that back."""
    if type(router) is not ROUTERS.get(router.name):
        raise ValueError(f"a file can hold a router of {sorted(ROUTERS)}; {router!r} is none: pickle the model.")
    return router.to_dict()
