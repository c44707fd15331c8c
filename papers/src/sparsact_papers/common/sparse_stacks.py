r"""Random stacks of sparsely activated layers on the cube, each k-sparse by proof.

Layer l takes the outputs a of the layer below (of layer 1: x itself) and has k trees of 2^D units each. Tree r reads an
address, D inputs F of its own; its unit :math:`\alpha` is a linear function of a behind the gate of that address, as in
Appendix A:

.. math:: \sigma\bigl(\langle v, a \rangle - c + \Gamma (\langle \alpha, x_F \rangle - D)\bigr), \qquad
          2 \Gamma \ge \max_x (\langle v, a(x) \rangle - c).

Every point agrees with one address of each tree; another gate takes :math:`2 \Gamma` away or more, so that its unit is
off: at most k units of a layer are active at any point. Outputs are divided by their root mean squared norm, a number
that counts to the weights of the next layer.

:func:`path_bound` is a bound of the average sensitivity by the largest weights alone. Let :math:`\omega_l` be the
largest norm of a unit's weights on x, :math:`v_l` the largest magnitude of a weight from layer l - 1 to layer l, and U
the largest magnitude of an output weight. Then

.. math:: \sqrt{\mathrm{AS}(h)} \le \sum_{l=1}^{L} (2k)^{L-l+1}\, U\, \omega_l\, v_{l+1} \cdots v_L .

It counts paths of units: :math:`(2k)^{L-l+1}` of them lead from layer l to the value.
:func:`sparsact.bounds.stack_sensitivity` is never larger, and proved in the documentation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact import Stack
from sparsact.hypercube import points
from sparsact.stack import StackLayer

Array = NDArray[np.float64]
ROOM: Final = 1 + 1e-9  # a gate is stronger by this, so that rounding switches no second unit on


def path_bound(stack: Stack, k: int) -> float:
    """The bound of the module on the average sensitivity, if at most k units of each layer are active."""
    along, root = float(np.abs(stack.u).max()), 0.0
    for number, layer in reversed(list(enumerate(stack.layers))):
        on_inputs = layer.V if number and layer.V is not None else layer.W
        along *= 2 * k
        root += along * float(np.linalg.norm(on_inputs, axis=1).max())
        along *= float(np.abs(layer.W).max())
    return root**2


def random_stack(n: int, depth: int, k: int, address: int, *, seed: int, stream: int) -> Stack:
    """A random stack with k * 2**address units a layer; stacks of one seed agree in the layers that they share."""
    if depth < 1:
        raise ValueError(f"a stack has a layer or more; got `depth` = {depth}.")
    X = points(n).astype(np.float64)
    a, norm = X, 1.0
    layers: list[StackLayer] = []
    for number in range(depth):
        rng = np.random.default_rng([seed, stream, number])
        layers.append(_layer(X, a, norm, k, address, rng, first=not number))
        a = np.maximum(layers[-1].preactivations(a, X), 0)
        norm = float(np.sqrt((a**2).sum(axis=1).mean()))
    u = np.random.default_rng([seed, stream, depth, 1]).choice([-1.0, 1.0], k * 2**address) / norm
    return Stack(u, layers)


def _layer(
    X: Array, a: Array, norm: float, k: int, address: int, rng: np.random.Generator, *, first: bool
) -> StackLayer:
    s, n = k * 2**address, X.shape[1]
    gates = np.zeros((s, n))
    for tree in np.split(np.arange(s), k):
        gates[np.ix_(tree, rng.choice(n, address, replace=False))] = points(address)
    c = rng.normal(size=s) / 2
    data = (
        np.where(gates == 0, rng.normal(size=(s, n)), 0) / np.sqrt(n - address)
        if first
        else rng.normal(size=(s, a.shape[1])) / norm
    )
    gate = ROOM * max(float((a @ data.T - c).max()), 0.0) / 2
    if first:
        return StackLayer(data + gate * gates, c + gate * address)
    return StackLayer(data, c + gate * address, gate * gates)
