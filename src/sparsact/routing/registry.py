"""Routers by name."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from sparsact.routing.block_top1 import BlockTop1
from sparsact.routing.lsh import EuclideanLSH, HyperplaneLSH
from sparsact.routing.nearest import Interpolation, Nearest
from sparsact.routing.random_hash import RandomHash
from sparsact.routing.router import Router
from sparsact.routing.switch import Switch
from sparsact.routing.top_k import TopK
from sparsact.routing.tree import Tree
from sparsact.validation.former_names import former_names, present_names

_KINDS: tuple[type[Router], ...] = (
    TopK,
    HyperplaneLSH,
    EuclideanLSH,
    RandomHash,
    Switch,
    BlockTop1,
    Nearest,
    Interpolation,
    Tree,
)
ROUTERS: dict[str, type[Router]] = {kind.name: kind for kind in _KINDS}
"""Every router by its name."""


def named(name: str, **hyperparameters: Any) -> Router:
    """The router of that name.

    Parameters
    ----------
    name : str
        As in ``Router.name``: ``"top_k"``, ``"tree"``.
    **hyperparameters
        Of that router.

    Returns
    -------
    router : Router
        The frozen record.

    Raises
    ------
    ValueError
        If no router has that name, or it has no such hyperparameter; says which there are.

    Examples
    --------
    >>> named("top_k", n_active=3)
    TopK(n_active=3, absolute=False)
    """
    if name not in ROUTERS:
        raise ValueError(f"no router is called {name!r}; there are {', '.join(ROUTERS)}.")
    kind = ROUTERS[name]
    known = list(signature(kind).parameters)
    unknown = [key for key in hyperparameters if key not in (*known, *former_names(kind))]
    if unknown:
        raise ValueError(f"{kind.__name__} has no hyperparameter {unknown[0]!r}; it has {', '.join(known)}.")
    try:
        return kind(**hyperparameters)
    except TypeError as error:
        raise ValueError(f"{kind.__name__} cannot be made from {hyperparameters}: {error}.") from error


def from_dict(record: Mapping[str, Any]) -> Router:
    """The router that :meth:`Router.to_dict` wrote.

    Parameters
    ----------
    record : mapping
        Name and hyperparameters.

    Returns
    -------
    router : Router
        Equal to the one that was written.

    Examples
    --------
    >>> from_dict({"router": "tree", "depth": 3})
    Tree(depth=3, random_state=0)
    """
    if not isinstance(record, Mapping) or not isinstance(record.get("router"), str):
        raise ValueError(f'a router is recorded as {{"router": name, ...}}; got {record!r}.')
    given = {str(key): value for key, value in record.items() if key != "router"}
    return named(record["router"], **present_names(ROUTERS.get(record["router"]), given))
