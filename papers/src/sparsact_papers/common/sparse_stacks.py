r"""Stacks of sparsely activated layers on the cube, each k-sparse by proof, and a bound on their sensitivity.

Layer l takes the outputs a of the layer below (of layer 1: x itself) and has k trees of 2^D units each. Tree r reads an
address, D inputs F of its own; its unit :math:`\alpha` is a linear function of a behind the gate of that address, as in
Appendix A:

.. math:: \sigma\bigl(\langle v, a \rangle - c + \Gamma (\langle \alpha, x_F \rangle - D)\bigr), \qquad
          2 \Gamma \ge \max_x (\langle v, a(x) \rangle - c).

Every point agrees with one address of each tree; another gate takes :math:`2 \Gamma` away or more, so that its unit is
off: at most k units of a layer are active at any point. Outputs are divided by their root mean squared norm, a number
that counts to the weights of the next layer.

*A bound, ours.* Let :math:`\omega_l` be the largest norm of a unit's weights on x, :math:`v_l` the largest magnitude
of a weight from layer l - 1 to layer l, and U that of an output weight. Then

.. math:: \sqrt{\mathrm{AS}(h)} \le \sum_{l=1}^{L} (2k)^{L-l+1}\, U\, \omega_l\, v_{l+1} \cdots v_L .

*Proof.* Flip input i. A unit that is off at x and at :math:`x^{\oplus i}` does not change, and any other changes by no
more than its pre-activation. So :math:`|h(x) - h(x^{\oplus i})|` is at most the sum over l of :math:`T_l(x, i)`, itself
a sum over paths of units in layers l..L, each active at x or at :math:`x^{\oplus i}`. A path adds :math:`2 |g|`, g the
weight of its first unit on input i, times the magnitudes of the weights along it. There are at most
:math:`(2k)^{L-l+1}` such paths, and a first unit begins :math:`(2k)^{L-l}` of them at most, so by Cauchy and Schwarz

.. math:: T_l^2 \le (2k)^{L-l+1} (2k)^{L-l}\, (U v_{l+1} \cdots v_L)^2 \sum_{j} 4 g_{ji}^2

over units j of layer l active at x or :math:`x^{\oplus i}`. Summed over i and averaged over x, units active at x
contribute at most :math:`4 k \omega_l^2`, those active at :math:`x^{\oplus i}` by symmetry as much. So
:math:`\mathbb{E} \sum_i T_l^2 / 4 \le ((2k)^{L-l+1} U \omega_l v_{l+1} \cdots v_L)^2`, and roots add by the triangle
inequality. For L = 1 it is :math:`\mathrm{AS} \le 4 k^2 W^2`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import points

Array = NDArray[np.float64]
ROOM = 1 + 1e-9  # a gate is stronger by this, so that rounding switches no second unit on


@dataclass(frozen=True, eq=False)
class StackLayer:
    """Weights on the inputs (gates, and in layer 1 the linear functions), on the layer below, and thresholds."""

    on_inputs: Array  # (s, n)
    below: Array | None  # (s, s); None in layer 1
    thresholds: Array  # (s,)

    def preactivations(self, X: Array, a: Array) -> Array:
        """At points X (m, n) where the layer below gives a (m, s), which layer 1 does not read; shape (m, s)."""
        z = X @ self.on_inputs.T - self.thresholds
        return z if self.below is None else z + a @ self.below.T


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers from the bottom up and output weights, with what they give at every point of the cube."""

    layers: tuple[StackLayer, ...]
    u: Array  # (s,)
    values: Array  # (2**n,), in table order
    most_active: tuple[int, ...]  # of each layer, over all points

    def sensitivity_bound(self, k: int) -> float:
        """The bound of the module on the average sensitivity, if at most k units of each layer are active."""
        along = float(np.abs(self.u).max())
        root = 0.0
        for layer in reversed(self.layers):
            along *= 2 * k
            root += along * float(np.linalg.norm(layer.on_inputs, axis=1).max())
            if layer.below is not None:
                along *= float(np.abs(layer.below).max())
        return root**2


def random_stack(n: int, depth: int, k: int, address: int, *, seed: int, stream: int) -> Stack:
    """A random stack with k * 2**address units a layer; stacks of one seed agree in the layers that they share."""
    if depth < 1:
        raise ValueError(f"a stack has a layer or more; got `depth` = {depth}.")
    X = points(n).astype(np.float64)
    a, norm = np.zeros((len(X), 0)), 1.0
    layers: list[StackLayer] = []
    active: list[int] = []
    for number in range(depth):
        rng = np.random.default_rng([seed, stream, number])
        layers.append(_layer(X, a, norm, k, address, rng))
        excess = layers[-1].preactivations(X, a)
        active.append(int((excess > 0).sum(axis=1).max()))
        a = np.maximum(excess, 0)
        norm = float(np.sqrt((a**2).sum(axis=1).mean()))
    u = np.random.default_rng([seed, stream, depth, 1]).choice([-1.0, 1.0], k * 2**address) / norm
    return Stack(tuple(layers), u, a @ u, tuple(active))


def _layer(X: Array, a: Array, norm: float, k: int, address: int, rng: np.random.Generator) -> StackLayer:
    s, n = k * 2**address, X.shape[1]
    gates = np.zeros((s, n))
    for tree in np.split(np.arange(s), k):
        gates[np.ix_(tree, rng.choice(n, address, replace=False))] = points(address)
    c = rng.normal(size=s) / 2
    if not a.size:
        data = np.where(gates == 0, rng.normal(size=(s, n)), 0) / np.sqrt(n - address)
        reach, below = X @ data.T - c, None
    else:
        data, below = np.zeros((s, n)), rng.normal(size=(s, s)) / norm
        reach = a @ below.T - c
    strength = ROOM * max(float(reach.max()), 0.0) / 2
    return StackLayer(data + strength * gates, below, c + strength * address)
