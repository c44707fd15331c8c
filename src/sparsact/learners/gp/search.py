"""Searches for the parameters of maximum posterior density: L-BFGS, Fisher scoring and Adam.

:func:`by_quasi_newton` if the value and its gradient are exact: tens of steps, and nothing else must be known.
:func:`by_scoring` if gradients are costly or estimated by random probes, and the expected information known: few steps.
:class:`Adam` if each gradient comes from other rows: a fixed number of steps, without a test of convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparsact.learners.gp.kernel import Array
from sparsact.statistics.solved import Solved

MAX_STEPS: Final = 200  # most searches take 10 to 60
_GRADIENT: Final = 1e-2  # far below what the rows determine
_OUT_OF_STEPS: Final = 1  # status of a search by SciPy
MAX_SCORING_STEPS, _LONGEST_STEP = 16, 2.0  # of a logarithm
_SMALL_STEP: Final = 0.5  # up to which the information of the step before serves
_SMALL_GAIN: Final = 0.5  # of log-likelihood, half the Newton decrement


def by_quasi_newton(
    log_density: Callable[[Array], tuple[float, Array]], start: Array, *, max_steps: int = MAX_STEPS
) -> Solved[Array]:
    """Find parameters (k,) of maximum density by L-BFGS from a start (k,).

    ``log_density`` has a value and its gradient. The residual is the largest derivative.
    """

    def loss(parameters: Array) -> tuple[float, Array]:
        value, gradient = log_density(parameters)
        return -value, -gradient

    # 1e-5 of the objective is far below what the rows determine, too
    options: Any = {"maxiter": max_steps, "maxcor": 20, "ftol": 1e-5, "gtol": _GRADIENT}
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    ended = best.status != _OUT_OF_STEPS  # or no step leads further up
    return Solved(best.x, int(best.nit), float(np.abs(best.jac).max()), _GRADIENT, ended)


def by_scoring(
    gradient_at: Callable[[Array], Array],
    information_at: Callable[[Array], Array],
    start: Array,
    *,
    information: Array | None = None,
    max_steps: int = MAX_SCORING_STEPS,
) -> Solved[tuple[Array, Array | None]]:
    """Find parameters (k,) of higher density by Fisher scoring, and the expected information (k, k) near them.

    ``information`` is that of a search before, which serves while steps are small. The residual is the gain of log
    density that one more step promises.
    """
    at, step, slope, gain = start, np.zeros_like(start), 0.0, np.inf
    steps = 0
    while steps < max_steps:
        steps += 1
        tried = at + step
        gradient = gradient_at(tried)
        ahead = float(gradient @ step)
        if ahead < -slope / 2:  # well beyond the maximum in this direction, which the secant finds
            shorter = slope / (slope - ahead)
            step, slope = shorter * step, shorter * slope
            continue
        if information is None or np.abs(step).max() > _SMALL_STEP:
            information = information_at(tried)
        at, step = tried, np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        gain = 0.5 * float(gradient @ step)
        if gain < _SMALL_GAIN:
            break
        # each by itself, so that the others do not wait for what the rows hardly determine
        clipped = step.clip(-_LONGEST_STEP, _LONGEST_STEP)
        step = clipped if gradient @ clipped > 0 else step * (_LONGEST_STEP / float(np.abs(step).max()))
        slope = float(gradient @ step)
    return Solved((at + step, information), steps, gain, _SMALL_GAIN, gain < _SMALL_GAIN)


class Adam:
    """Adam with decoupled weight decay; arrays change in place.

    Parameters
    ----------
    parameters : sequence of ndarray
        Arrays of any shapes, changed in place.
    moments : pair of float
        Weights of the past in the means of derivatives and of their squares.
    decays : sequence of float
        A decay for each array.

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015. Loshchilov and Hutter, "Decoupled weight
    decay regularization", ICLR 2019.
    """

    def __init__(
        self, parameters: Sequence[NDArray[Any]], moments: tuple[float, float], decays: Sequence[float]
    ) -> None:
        self.parameters, self.moments, self.decays, self.steps = parameters, moments, decays, 0
        self.means = [np.zeros_like(one) for one in parameters]
        self.squares = [np.zeros_like(one) for one in parameters]

    def step(self, gradient: Sequence[NDArray[Any]], rate: float) -> None:
        """Take one step of descent; the gradient is overwritten."""
        self.steps += 1
        first, second = (1 - moment**self.steps for moment in self.moments)
        rest = np.sqrt(second)
        arrays = zip(self.parameters, gradient, self.means, self.squares, self.decays, strict=True)
        for one, by, mean, square, decay in arrays:
            mean *= self.moments[0]
            mean += (1 - self.moments[0]) * by
            square *= self.moments[1]
            by *= by
            by *= 1 - self.moments[1]
            square += by
            if decay:
                one *= 1 - rate * decay
            root = np.sqrt(square)
            root += 1e-8 * rest
            np.divide(mean, root, out=root)
            root *= rate * rest / first
            one -= root
