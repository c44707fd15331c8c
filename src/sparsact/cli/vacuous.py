"""Which bounds say no more than what is known without them."""

from __future__ import annotations

from collections.abc import Mapping
from math import e, inf, log, log2
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sparsact.bounds import BoundInfo

VACUOUS: Final = (
    "vacuous: true without the bound. For example, average sensitivity is at most n Var, noise sensitivity "
    "(1 - rho^n)/2 Var and weight above a degree Var, where Var is the variance of the network, or C^2 if it is "
    "unknown; degree n is enough, and so are rows that show all 2^n points of the cube."
)


def most_variance(parameters: Mapping[str, float], variance: float | None) -> float:
    """Variance of a known network, or else C^2, which no variance exceeds; infinite where C is not known."""
    C = parameters.get("C", inf)
    return C * C if variance is None else variance


def is_vacuous(
    entry: BoundInfo, found: Mapping[str, Any], parameters: Mapping[str, float], variance: float | None
) -> bool:
    """Whether a bound with the value and logarithm ``found`` says nothing of functions with these parameters."""
    if isinstance(found["value"], dict) or found["value"] == 0:
        return False
    size = inf if found["log2"] is None else found["log2"]
    if entry.gives.endswith("at least"):
        return bool(size <= 0 and not entry.gives.startswith("probability"))
    return bool(size >= _limit(entry.gives, parameters, most_variance(parameters, variance)) - 1e-9)  # rounding


def _limit(gives: str, parameters: Mapping[str, float], variance: float) -> float:
    """Base-2 logarithm of what is known without an upper bound; infinite where nothing is."""
    from sparsact.bounds.arithmetic import log2_of

    n, rho = parameters.get("n", inf), parameters["rho"]
    if gives.startswith("average sensitivity of a halfspace"):
        p = parameters["probability"]
        return log2_of(n * p * (1 - p))
    if gives.startswith("average sensitivity"):
        return log2_of(n * variance)
    if gives.startswith("noise sensitivity"):
        return log2_of(variance * (1 - (rho**n if rho > 0 else rho)) / 2)
    if gives.startswith("weight above"):
        return log2_of(variance)
    if gives.startswith("Rademacher complexity, dense"):  # a class of larger functions
        return log2_of(parameters["s"] * (parameters["W"] * parameters["R"] + parameters["B"]))
    if gives.startswith("Rademacher complexity"):
        return log2_of(parameters.get("C", inf))
    if gives.startswith("mean number of active units"):
        return log2_of(parameters["s"])
    if not gives.startswith(("degree enough", "rows")):
        return inf
    if parameters["epsilon"] >= variance:  # a constant errs no more
        return -inf
    if gives.startswith("degree enough"):
        return log2_of(n)
    if gives.startswith("rows, any distribution"):  # who remembers m rows errs C^2 2^n / (e m) in the mean
        return (
            n
            + 2 * log2_of(parameters.get("C", inf))
            - log2(e)
            - log2(parameters["epsilon"])
            - log2(parameters["delta"])
        )
    return n + log2(n * log(2) - log(parameters["delta"])) if n < inf else inf
