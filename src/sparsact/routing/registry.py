"""Routers by name, and from the dictionaries that they write."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from sparsact.routing.hyperplane_lsh import HyperplaneLSH
from sparsact.routing.random_hash import RandomHash
from sparsact.routing.router import Router
from sparsact.routing.top_k import TopK

ROUTERS: dict[str, type[Router]] = {
    router.name: router
    for router in (
        TopK,
        HyperplaneLSH,
        RandomHash,
    )
}
"""Every router, by its name."""


def from_dict(record: Mapping[str, Any]) -> Router:
    """The router whose :meth:`Router.to_dict` gave ``record``.

    Raises
    ------
    ValueError
        If it names no router, or has a hyperparameter that is missing, unknown, or of the wrong type.

    Examples
    --------
    >>> from_dict({"router": "top_k", "k": 3})
    TopK(k=3, absolute=False)
    """
    if not isinstance(record, Mapping) or record.get("router") not in ROUTERS:
        name = record.get("router") if isinstance(record, Mapping) else record
        raise ValueError(f"`router` must be one of {', '.join(sorted(ROUTERS))}; got {name!r}.")
    make = ROUTERS[record["router"]]
    given = {str(name): value for name, value in record.items() if name != "router"}
    known = signature(make).parameters
    unknown = sorted(set(given) - set(known))
    missing = [name for name, p in known.items() if p.default is Parameter.empty and name not in given]
    if unknown or missing:
        wrong = f"does not know {', '.join(unknown)}" if unknown else f"needs {', '.join(missing)}"
        raise ValueError(f"{make.name} {wrong}; its hyperparameters are {', '.join(known)}.")
    try:
        return make(**given)
    except TypeError as error:
        raise ValueError(str(error)) from error


def named(name: str, **hyperparameters: Any) -> Router:
    """The router of this name, such as ``named("top_k", k=3)``."""
    return from_dict({"router": name, **hyperparameters})
