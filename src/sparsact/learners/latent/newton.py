"""Newton's method for a log-likelihood, damped where a step does not lead up (Levenberg and Marquardt)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array

Terms = tuple[float, Array, Array]  # a function of parameters (q,), its gradient and its negative second derivatives

MAX_ITER: Final = 500  # steps of Newton's method for a penalty, and penalties; 5 to 60 are usual
_ENOUGH: Final = 1e-7  # expected gain of a step in log-likelihood
_LEAST_DAMPING: Final = 1e-6  # in the diagonal of second derivatives: as large as their rounding


@dataclass(frozen=True, eq=False)
class Maximum:
    """Parameters (q,), the negative second derivatives (q, q) there, steps, and whether the search came to rest."""

    at: Array
    information: Array
    steps: int
    converged: bool


def maximum(terms: Callable[[Array], Terms | None], start: Array, max_iter: int = MAX_ITER) -> Maximum:
    """A local maximum of a function that has terms at ``start``, and None where parameters are out of range."""
    at, found = start, terms(start)
    assert found is not None
    value, gradient, hessian = found
    damping = 0.0
    for count in range(1, max_iter + 1):
        step = _step(hessian, gradient, damping)
        if step is not None:
            expected = float(gradient @ step)
            if expected <= _ENOUGH and damping <= _LEAST_DAMPING:
                return Maximum(at, hessian, count, True)
            found = _finite(terms, at + step)
            if found is not None and found[0] >= value + 1e-3 * expected:
                at, (value, gradient, hessian) = at + step, found
                damping = damping / 10 if damping > _LEAST_DAMPING else 0.0
                continue
        damping = max(4 * damping, _LEAST_DAMPING)
    return Maximum(at, hessian, max_iter, False)


def _finite(terms: Callable[[Array], Terms | None], at: Array) -> Terms | None:
    """The terms, or None where a step leads to no numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = terms(at)
    return found if found is not None and np.isfinite(found[0]) and np.isfinite(found[2]).all() else None


def _step(information: Array, gradient: Array, damping: float) -> Array | None:
    """Newton's step, or None where the damped second derivatives are not positive definite."""
    try:
        return Cholesky.of(np.array(information, order="F"), jitter=damping).solve(gradient)
    except np.linalg.LinAlgError:
        return None


def inverse(information: Array) -> Array:
    """The inverse of second derivatives, which rounding may have made singular."""
    return Cholesky.nearly_of(information).solve(np.eye(len(information)))
