r"""Stacks of sparsely activated layers on the cube, tabulated.

The first layer is a random network whose k-sparsity is proved (:func:`~sparsact.constructions.random_network`) with a
random output matrix. Each further layer has s units of random unit weights, whose thresholds are quantiles over the
cube: a unit is on at a share k / s of the points, so that k units are on in the mean, and more at some points. Between
layers, activations are centred and scaled to a mean squared norm of n, that of a point of the cube.

.. math:: z_l = c_l U_l \sigma(W_l z_{l-1} - b_l) - d_l, \qquad F = \langle u, \sigma(W_L z_{L-1} - b_L) \rangle

A layer is Lipschitz with :math:`\Lambda_l = c_l \|U_l\| \|W_l\|` (spectral norms; ReLU is 1-Lipschitz), so that
:math:`|F(x) - F(x')| \le \prod_{l \ge 2} \Lambda_l \|z_1(x) - z_1(x')\|`, and summed over the edges of the cube

.. math:: \mathrm{AS}(F) \le \prod_{l \ge 2} \Lambda_l^2 \sum_j \mathrm{AS}(z_{1,j}).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import random_network
from sparsact.fourier import average_sensitivity
from sparsact.hypercube import points

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stack:
    """A stack at every point of the cube.

    Attributes
    ----------
    values : ndarray of shape (2**n,)
        F, centred and scaled to variance 1.
    n_active : tuple of ndarray of shape (2**n,)
        Active units of each layer.
    bound : float
        On the average sensitivity of ``values``, as in the module's docstring; of one layer the sensitivity itself.
    """

    values: Array
    n_active: tuple[NDArray[np.intp], ...]
    bound: float


def random_stack(n: int, s: int, k: int, n_layers: int, *, rng: np.random.Generator) -> Stack:
    """A random stack. The first layers of a seed are the same for any number of layers above them.

    Parameters
    ----------
    n, s, k : int
        Inputs, units of a layer, units that are on: at most in the first layer, in the mean in the others.
    n_layers : int
        At least 1.
    rng : numpy.random.Generator
    """
    network = random_network(n, s, k, rng=rng)
    phi = np.maximum(network.preactivations(points(n)), 0.0)
    active, bound, norm = [np.count_nonzero(phi, axis=1)], 1.0, 1.0
    for layer in range(1, n_layers):
        U, W = rng.choice([-1.0, 1.0], size=(n, s)), _unit_rows(s, n, rng)
        z, scale = _normalised(phi @ U.T)
        if layer == 1:
            bound = sum(average_sensitivity(z[:, j]) for j in range(n))
        else:
            bound *= (scale * float(np.linalg.norm(U, 2)) * norm) ** 2
        norm = float(np.linalg.norm(W, 2))
        pre = z @ W.T
        phi = np.maximum(pre - np.quantile(pre, 1 - k / s, axis=0), 0.0)
        active.append(np.count_nonzero(phi, axis=1))
    u = rng.choice([-1.0, 1.0], size=s)
    F = phi @ u
    values = (F - F.mean()) / F.std()
    if n_layers == 1:
        return Stack(values, tuple(active), average_sensitivity(values))
    return Stack(values, tuple(active), bound * float(u @ u) * norm**2 / float(F.var()))


def _normalised(z: Array) -> tuple[Array, float]:
    """Activations centred and scaled to a mean squared norm of their number, and the factor."""
    centred = z - z.mean(axis=0)
    scale = float(np.sqrt(z.shape[1] / np.mean((centred**2).sum(axis=1))))
    return scale * centred, scale


def _unit_rows(s: int, n: int, rng: np.random.Generator) -> Array:
    W = rng.normal(size=(s, n))
    return np.asarray(W / np.linalg.norm(W, axis=1, keepdims=True))
