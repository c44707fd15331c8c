"""Newton's method for a log-likelihood, damped where a step does not lead up (Levenberg and Marquardt)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array
from sparsact.statistics.solved import Solved

Terms = tuple[float, Array, Array]  # a function of parameters (q,), its gradient and its negative second derivatives

MAX_ITER: Final = 500  # steps of Newton's method for a penalty, and penalties; 5 to 60 are usual
_ENOUGH: Final = 1e-7  # expected gain of a step in log-likelihood
_LEAST_DAMPING: Final = 1e-6  # in the diagonal of second derivatives: as large as their rounding
_MOST_DAMPING: Final = 1e16  # steps are then as small as rounding


class Maximum(NamedTuple):
    """Parameters (q,) at a maximum, and the negative second derivatives (q, q) there."""

    parameters: Array
    information: Array


def maximum(
    terms: Callable[[Array], Terms], in_range: Callable[[Array], bool], start: Array, max_iter: int = MAX_ITER
) -> Solved[Maximum]:
    """A local maximum of a function, from a start in the range of its parameters, which is not left."""
    at, (value, gradient, hessian) = start, terms(start)
    damping, expected = 0.0, np.inf
    for count in range(1, max_iter + 1):
        step = _step(hessian, gradient, damping)
        if step is not None:
            expected = float(gradient @ step)
            if expected <= _ENOUGH and damping <= _LEAST_DAMPING:
                return Solved(Maximum(at, hessian), count, expected, _ENOUGH, True)
            if in_range(at + step):
                with np.errstate(over="ignore", invalid="ignore"):
                    found = terms(at + step)
                leads_up = found[0] >= value + 1e-3 * expected  # of numbers only
                if leads_up and np.isfinite(found[0]) and np.isfinite(found[2]).all():
                    at, (value, gradient, hessian) = at + step, found
                    damping = damping / 10 if damping > _LEAST_DAMPING else 0.0
                    continue
        damping = max(4 * damping, _LEAST_DAMPING)
        if damping > _MOST_DAMPING:
            break
    return Solved(Maximum(at, hessian), count, expected, _ENOUGH, False)


def _step(information: Array, gradient: Array, damping: float) -> Array | None:
    """Newton's step, or None where the damped second derivatives are not positive definite."""
    try:
        return Cholesky.of(np.array(information, order="F"), jitter=damping).solve(gradient)
    except np.linalg.LinAlgError:
        return None


def inverse(information: Array) -> Array:
    """The inverse of second derivatives, which rounding may have made singular."""
    lower = Cholesky.nearly_of(information).lower_inverse()
    return np.asarray(lower + np.tril(lower, -1).T)
