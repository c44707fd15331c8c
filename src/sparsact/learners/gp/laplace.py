r"""Laplace's approximation of a process and its noise, for any likelihood, by damped Newton steps.

In units of the noise, :math:`\eta = \gamma f` has the prior :math:`N(0, K)`, so that the joint mode of
:math:`\eta` and :math:`\gamma = 1/\sigma` has the noise of greatest marginal likelihood. With the curvatures W of the
negative log-likelihood by :math:`\eta` and its mixed derivatives b with :math:`\gamma`, a Newton step of both is

.. math:: \eta = (I - W^{-1} A^{-1})(t - W^{-1} b\, d\gamma), \qquad A = K + W^{-1},

where t are working targets of noise variances :math:`W^{-1}`: an ordinary process, solved by any system [1]_.

References
----------
.. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, Sections 3.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np

from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.system import System
from sparsact.statistics.solved import Solved

_ENOUGH: Final = 1e-6  # of a step's gain in log-likelihood
_SHORTEST: Final = 1e-6  # part of a step
_TOLERANCE: Final = 1e-6  # of the solutions


class Mode(NamedTuple):
    r""":math:`\gamma`, and :math:`\eta` (m,) with the inverse covariance matrix times it."""

    precision: float
    eta: Array
    dual: Array


class Working(NamedTuple):
    r"""A normal likelihood with the derivatives of another: targets t, weights W, and terms of the noise.

    ``mixed`` are b (m,); ``gradient`` and ``curvature`` the derivative of the log-likelihood by :math:`\gamma` and its
    negative second one.
    """

    targets: Array
    weights: Array
    mixed: Array
    gradient: float
    curvature: float


class MeasuredFunction(Protocol):
    """Likelihood of measurements of a function at m points."""

    def log_likelihood(self, at: Mode) -> float:
        """Log-likelihood, up to a constant."""

    def working(self, at: Mode) -> Working:
        """Normal likelihood with the same derivatives."""


def laplace_mode(
    measurement: MeasuredFunction, system_of: Callable[[Array], System], start: Mode, max_iter: int
) -> Solved[Mode]:
    """Find the most probable function and noise; the residual is the gain of the last step.

    It has converged if no step of any length leads up, or a step hardly gains. ``system_of`` has K + 1 / W
    for weights (m,).
    """

    def objective(at: Mode) -> float:
        return measurement.log_likelihood(at) - float(0.5 * at.eta @ at.dual)

    at, value, gain = start, objective(start), np.inf
    for count in range(max_iter):
        aim, length = _aim(at, measurement.working(at), system_of), 1.0
        while length > _SHORTEST:
            tried = Mode(
                at.precision + length * (aim.precision - at.precision),
                at.eta + length * (aim.eta - at.eta),
                at.dual + length * (aim.dual - at.dual),
            )
            if tried.precision > 0 and (found := objective(tried)) >= value:
                break
            length /= 2
        else:
            return Solved(at, count + 1, 0.0, _ENOUGH, True)
        gain, at, value = found - value, tried, found
        if gain < _ENOUGH:
            return Solved(at, count + 1, gain, _ENOUGH, True)
    return Solved(at, max_iter, gain, _ENOUGH, False)


def _aim(at: Mode, working: Working, system_of: Callable[[Array], System]) -> Mode:
    """Target of a full Newton step."""
    targets = np.stack([working.targets, working.mixed / working.weights])
    system = system_of(working.weights)
    solved = system.solve(targets, _TOLERANCE).checked(system.solver, system.remedy)
    smooth = targets - solved / working.weights
    down = working.gradient - working.mixed @ (smooth[0] - at.eta)
    step = float(down / (working.curvature - working.mixed @ smooth[1]))
    return Mode(at.precision + step, smooth[0] - step * smooth[1], solved[0] - step * solved[1])
