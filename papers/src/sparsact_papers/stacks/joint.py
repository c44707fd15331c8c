r"""Descent of all layers of a stack at once, with a penalty on the activity beyond each layer's k largest outputs.

The penalised risk is that of :mod:`sparsact.learners.sparsely_activated.descent`, with one penalty a layer: unit j of
layer l counts by its output times the norm of the weights that read it, as a share of the layer's mean square. L-BFGS
moves weights over standardised columns, with rising penalties; after each, thresholds are raised until no row has more
than k units of a layer on, from the bottom up, and the best stack so obtained is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparsact.learners.sparsely_activated.descent import OUT_OF_STEPS
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.learners.sparsely_activated.to_network import excess_of
from sparsact.stack import Stack, StackLayer
from sparsact.statistics.solved import Solved

Floats = NDArray[Any]
PENALTIES: Final = (0.0, 1.0, 10.0, 100.0, 1000.0)
CLEARANCE: Final = 1e-15  # of the magnitudes in a pre-activation, for each of its terms: what sums may be off by
GTOL: Final = 1e-12  # of the gradient
RANK: Final = 1e-10  # of least squares for the read-out


@dataclass(frozen=True, eq=False)
class JointRisk:
    """The penalised risk of the layers of a stack on some rows.

    Attributes
    ----------
    columns, targets, shares : ndarray of shape (m, n), (m,), (m,)
        Standardised rows, targets, and shares of the weight that sum to one.
    max_active : sequence of int
        k of each layer.
    """

    columns: Array
    targets: Array
    shares: Array
    max_active: Sequence[int]

    def __call__(self, stack: Stack, penalty: float) -> tuple[float, list[Array]]:
        """The value, and its gradient along the parts of the stack."""
        z, outputs = stack.preactivations(self.columns), [self.columns]
        outputs += [np.maximum(each, 0) for each in z]
        errors = outputs[-1] @ stack.u - self.targets
        weighted = self.shares * errors
        value, slopes = float(weighted @ errors), np.outer(weighted, stack.u)
        gradient = [outputs[-1].T @ weighted]
        readers = [np.linalg.norm(layer.W, axis=0) for layer in stack.layers[1:]] + [np.abs(stack.u)]
        scale = float(self.shares @ self.targets**2)
        for level in range(stack.depth - 1, -1, -1):
            layer, a = stack.layers[level], outputs[level + 1]
            contributions = a * readers[level]
            excess = excess_of(contributions, self.max_active[level])
            if penalty and excess.any():
                size = float(self.shares @ (contributions**2).sum(axis=1))
                strength = penalty * (1.0 if level == stack.depth - 1 else scale / max(size, 1e-300))
                pushed = strength * self.shares[:, None] * excess
                value += float(np.vdot(pushed, excess))
                slopes = slopes + pushed * readers[level]
            slopes = slopes * (a > 0)
            of_inputs = [] if layer.V is None else [slopes.T @ self.columns]
            gradient = [slopes.T @ outputs[level], -slopes.sum(axis=0), *of_inputs, *gradient]
            slopes = slopes @ layer.W
        return value / 2, gradient

    def minimised(self, stack: Stack, penalty: float, max_iter: int) -> Solved[Stack]:
        """A stack near the given one that minimises the risk, within the budget of one of many descents."""
        parts = parts_of(stack)
        cuts = np.cumsum([part.size for part in parts])[:-1]

        def at(flat: Floats) -> Stack:
            moved = [piece.reshape(part.shape) for piece, part in zip(np.split(flat, cuts), parts, strict=True)]
            return stack_of(moved, stack)

        def objective(flat: Floats) -> tuple[float, Floats]:
            value, gradient = self(at(flat), penalty)
            return value, np.concatenate([each.ravel() for each in gradient])

        start = np.concatenate([part.ravel() for part in parts])
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": 1e-15, "gtol": GTOL},
        )
        slope = float(np.abs(found.jac).max())
        return Solved(at(found.x), int(found.nit), slope, GTOL, found.status != OUT_OF_STEPS)

    def in_class(self, stack: Stack, max_iter: int) -> tuple[Stack, int]:
        """A stack near the given one with each layer sparse on the rows, and the number of iterations."""
        best, least, iterations = sparse_on(stack, self.columns, self.max_active), np.inf, 0
        for penalty in PENALTIES:
            found = self.minimised(balanced(stack), penalty, max_iter)
            stack, iterations = found.value, iterations + found.steps
            sparse = self.refitted(sparse_on(stack, self.columns, self.max_active))
            if (risk := self(sparse, 0.0)[0]) < least:
                best, least = sparse, risk
        return best, iterations

    def refitted(self, stack: Stack) -> Stack:
        """The stack with the best read-out of its last layer."""
        root = np.sqrt(self.shares)
        a = np.maximum(stack.preactivations(self.columns)[-1], 0)
        return Stack(np.linalg.lstsq(a * root[:, None], self.targets * root, rcond=RANK)[0], stack.layers)


@dataclass(frozen=True)
class Standardisation:
    """Standardised columns and targets: their means, spreads, and the size of the targets."""

    mean: Array
    spread: Array
    size: float

    def __call__(self, stack: Stack) -> Stack:
        """The stack over the original columns."""
        return _moved(stack, -self.mean / self.spread, 1 / self.spread, 1 / self.size)

    def inverse(self, stack: Stack) -> Stack:
        """The stack over the standardised columns."""
        return _moved(stack, self.mean, self.spread, self.size)


def scaled(X: Array, y: Array, weights: Array, max_active: Sequence[int]) -> tuple[JointRisk, Standardisation]:
    """The risk over standardised columns and targets, and the way back."""
    shares = weights / weights.sum()
    mean = shares @ X
    spread = np.sqrt(shares @ (X - mean) ** 2)
    spread = np.where(spread > 0, spread, 1.0)
    size = float(np.sqrt(shares @ y**2)) or 1.0
    return JointRisk((X - mean) / spread, y / size, shares, max_active), Standardisation(mean, spread, size)


def _moved(stack: Stack, mean: Array, spread: Array, size: float) -> Stack:
    """The stack over columns ``(X - mean) / spread``, divided by ``size``."""
    layers = []
    for level, (W, b, V) in enumerate(stack.layers):
        own = V if level else W
        b = b if own is None else b - own @ mean
        over = None if own is None else own * spread
        layers.append(StackLayer(W, b, over) if level else StackLayer(W * spread, b))
    return Stack(stack.u / size, layers)


def parts_of(stack: Stack) -> list[Array]:
    """Weights and thresholds from the bottom up, and the read-out."""
    return [*(part for layer in stack.layers for part in layer if part is not None), stack.u]


def stack_of(parts: list[Array], like: Stack) -> Stack:
    """The stack with such parts, in layers of the shape of another."""
    rest, layers = iter(parts), []
    for layer in like.layers:
        layers.append(StackLayer(next(rest), next(rest), None if layer.V is None else next(rest)))
    return Stack(next(rest), layers)


def balanced(stack: Stack) -> Stack:
    """The same function; the weights that a unit reads with, and that it is read with, have the same norm."""
    layers, u = list(stack.layers), stack.u
    for level in range(stack.depth):
        W, b, V = layers[level]
        above = layers[level + 1] if level + 1 < stack.depth else None
        read = (W**2).sum(axis=1) + b**2 + (0 if V is None else (V**2).sum(axis=1))
        reader = u**2 if above is None else (above.W**2).sum(axis=0)
        factor = np.where((read > 0) & (reader > 0), (reader / np.where(read > 0, read, 1.0)) ** 0.25, 1.0)
        layers[level] = StackLayer(W * factor[:, None], b * factor, None if V is None else V * factor[:, None])
        if above is None:
            u = u / factor
        else:
            layers[level + 1] = StackLayer(above.W / factor, above.b, above.V)
    return Stack(u, layers)


def sparse_on(stack: Stack, X: Array, max_active: Sequence[int]) -> Stack:
    """The stack with thresholds raised, from the bottom up, until no row has more than ``max_active`` units on."""
    a, layers = X, list[StackLayer]()
    for layer, k in zip(stack.layers, max_active, strict=True):
        n_terms = layer.W.shape[1] + 1 + (0 if layer.V is None else X.shape[1])
        margin = n_terms * CLEARANCE * layer.sizes(np.abs(a), np.abs(X))
        excess = excess_of(np.maximum(layer.preactivations(a, X) + margin, 0), k)
        surplus = excess.max(axis=0, initial=0.0)
        layers.append(StackLayer(layer.W, layer.b + surplus, layer.V))
        a = np.maximum(layers[-1].preactivations(a, X), 0)
    return Stack(stack.u, layers)
