"""Random stacks of every kind of weights, and what their definition gives, for tests."""

from fractions import Fraction

import numpy as np

from sparsact.hypercube import points
from sparsact.stack import Stack

KINDS = ("integers", "eighths", "tenths", "reals", "far")


def random_stack(kind, sizes, n, rng, *, reads_inputs=True):
    """Random weights with many ties, and thresholds low enough that units are on somewhere."""
    layers = []
    for below, s in zip((n, *sizes), sizes, strict=False):
        W = rng.integers(-2, 3, (s, below)).astype(float)
        V = rng.integers(-1, 2, (s, n)).astype(float) if layers and reads_inputs else None
        b = rng.integers(-1, 3, s).astype(float)
        if kind == "reals":
            W, b = rng.normal(size=W.shape), rng.normal(size=s) / 2
            V = None if V is None else rng.normal(size=V.shape)
        scale = {"eighths": 1 / 8, "tenths": 0.1, "far": 1.0}.get(kind, 1.0)
        W, b, V = W * scale, b * scale, None if V is None else V * scale
        if kind == "far":  # more digits apart than a float64 holds
            W = np.where(rng.random(W.shape) < 0.3, W * 1e-25, W)
        layers.append((W, b) if V is None else (W, b, V))
    return Stack(rng.normal(size=sizes[-1]), layers)


def gated_stack(n, depth, k, address, rng):
    """A stack with at most k units of each layer on: k trees of gated linear functions in each."""
    layers, reach_below = [], None
    for level in range(depth):
        s = k * 2**address
        gates = np.zeros((s, n))
        for tree in np.split(np.arange(s), k):
            gates[np.ix_(tree, rng.choice(n, address, replace=False))] = points(address)
        c = rng.normal(size=s) / 2
        if not level:
            data, below = np.where(gates == 0, rng.normal(size=(s, n)), 0) / np.sqrt(n), None
            reach = np.abs(data).sum(axis=1) - c
        else:
            data, below = np.zeros((s, n)), rng.normal(size=(s, s))
            reach = np.sort(np.maximum(below * reach_below, 0), axis=1)[:, -k:].sum(axis=1) - c
        gate = 1.001 * max(float(reach.max()), 0.0) / 2
        direct, b = data + gate * gates, c + gate * address
        layers.append((direct, b) if below is None else (below, b, direct))
        reach_below = np.maximum(reach, 0)
    return Stack(rng.choice([-1.0, 1.0], s), layers)


def by_definition(stack, x):
    """The value, and the outputs of each layer, at one point, in fractions."""
    inputs = [Fraction(float(value)) for value in x]
    a, outputs = inputs, []
    for layer in stack.layers:
        z = [-Fraction(float(b)) for b in layer.b]
        for weights, values in ((layer.W, a), (layer.V, inputs)):
            if weights is not None:
                for j, row in enumerate(weights):
                    z[j] += sum(Fraction(float(w)) * value for w, value in zip(row, values, strict=True))
        a = [max(value, Fraction(0)) for value in z]
        outputs.append(a)
    return sum(Fraction(float(u)) * value for u, value in zip(stack.u, a, strict=True)), outputs
