"""Searches for stacks: starts of two kinds, each moved by joint descent, compared on rows held out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsact.learners.sparsely_activated.held_out import FEWEST, Descended, HeldOut, split
from sparsact.learners.sparsely_activated.joint import JointRisk, parts_of, scaled, sparse_on, stack_of
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.learners.sparsely_activated.random_starts import BATCH, BETAS, EPSILON, LAST_RATE, RAMP, WARM_UP
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack, StackLayer

STEPS = 0.4  # iterations of each joint descent for each of max_iter, and for each penalty
BATCHES = 12.5  # steps of Adam for each of max_iter
N_STARTS = 3  # random stacks, of which the best is moved on
RATE, PENALTY = 0.02, 1.0  # of Adam
Fit = Callable[[Array, Array, Array, int, int], SparselyActivatedNetwork]


class StackSearch(HeldOut[Stack]):
    """Stacks fitted to most rows and compared on the rest.

    Parameters
    ----------
    X, y, weights : ndarray of shape (m, n), (m,), (m,)
        The rows.
    n_units, max_active : sequence of int
        The most units of each layer, and the most that a row may switch on.
    max_iter : int
        The measure of all iterations.
    fit : callable
        A network fitted to rows, targets and weights, with the most units and the most that a row switches on.
    rng : numpy.random.Generator
        Of the split and the random starts.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        weights: Array,
        n_units: Sequence[int],
        max_active: Sequence[int],
        max_iter: int,
        fit: Fit,
        rng: np.random.Generator,
    ) -> None:
        self.all = X, y, weights
        self.n_units, self.max_active, self.max_iter, self.fit, self.rng = n_units, max_active, max_iter, fit, rng
        fitted, held = split(len(X), rng) if len(X) >= FEWEST else (np.arange(len(X)),) * 2
        self.train = X[fitted], y[fitted], weights[fitted]
        self.held = X[held]
        mean = np.average(y, weights=weights)
        super().__init__(y[held], weights[held], float(np.average((y - mean) ** 2, weights=weights)))

    def shallow(self) -> Descended[Stack]:
        """One layer with the units of all layers."""
        return self._found(self._one_layer(*self.train), "one layer", 1)

    def layerwise(self) -> Descended[Stack]:
        """Each layer fitted from the inputs and the outputs of the layer below; then all together."""
        X, y, weights = self.train
        layers, a, u = list[StackLayer](), np.zeros((len(X), 0)), np.zeros(0)
        for s, k in zip(self.n_units, self.max_active, strict=True):
            network = self.fit(np.column_stack([X, a]), y, weights, s, k)
            n, W, u = X.shape[1], np.asarray(network.W), network.u
            layers.append(StackLayer(W[:, n:], network.b, W[:, :n]) if layers else StackLayer(W, network.b))
            a = np.maximum(layers[-1].preactivations(a if len(layers) > 1 else X, X), 0)
        return self._found(*self._descended(Stack(u, layers), *self.train), "layer by layer")

    def random(self) -> Descended[Stack]:
        """The best of a few random stacks, each moved by mini-batches; then descent."""
        risk, back = scaled(*self.train, self.max_active)
        starts = [self._by_batches(risk, self._random_stack(risk.columns.shape[1])) for _ in range(N_STARTS)]
        start = min(starts, key=lambda each: risk(each, PENALTY)[0])
        return self._found(*self._descended(back(start), *self.train), "random units")

    def best(self) -> tuple[Stack, str, int]:
        """The best on the rows held out, fitted to all rows; how it was found, and the iterations."""
        best = min(self.found, key=lambda each: each.error)
        if best.origin == "one layer":
            return self._one_layer(*self.all), best.origin, best.iterations
        moved, iterations = self._descended(best.units, *self.all)
        return moved, best.origin, best.iterations + iterations

    def _found(self, stack: Stack, *about: object) -> Descended[Stack]:
        origin, iterations = sorted(about, key=lambda each: isinstance(each, int))
        found = self.judged(stack, stack(self.held), str(origin), int(iterations))  # type: ignore[call-overload]
        self.least = min(self.least, found.error)
        self.found.append(found)
        return found

    def _one_layer(self, X: Array, y: Array, weights: Array) -> Stack:
        network = self.fit(X, y, weights, sum(self.n_units), sum(self.max_active))
        return Stack(network.u, [(network.W, network.b)])

    def _descended(self, stack: Stack, X: Array, y: Array, weights: Array) -> tuple[Stack, int]:
        """The stack after a joint descent, and the iterations; as it was, but sparse, if that is better."""
        risk, back = scaled(X, y, weights, self.max_active)
        moved, iterations = risk.in_class(back.inverse(stack), max(1, int(STEPS * self.max_iter)))
        stacks = [sparse_on(each, X, self.max_active) for each in (back(moved), stack)]
        return min(stacks, key=lambda each: float(weights @ (each(X) - y) ** 2)), max(1, iterations)

    def _random_stack(self, n: int) -> Stack:
        layers, below = list[StackLayer](), 0
        for s in self.n_units:
            b = self.rng.uniform(-0.8, 1.2, s)
            own = self.rng.standard_normal((s, n)) / np.sqrt(n)
            above = self.rng.standard_normal((s, below)) / np.sqrt(max(below, 1))
            layers.append(StackLayer(above, b, own) if layers else StackLayer(own, b))
            below = s
        return Stack(self.rng.standard_normal(below) / np.sqrt(below), layers)

    def _by_batches(self, risk: JointRisk, stack: Stack) -> Stack:
        """A stack moved by Adam, while a penalty on units beyond the k largest rises; see :mod:`.random_starts`."""
        parts, n_steps, m = [part.copy() for part in parts_of(stack)], int(BATCHES * self.max_iter), len(risk.targets)
        moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parts]
        size = min(BATCH, m)
        for step in range(1, n_steps + 1):
            rows = self.rng.integers(m, size=size)
            shares = risk.shares[rows] / risk.shares[rows].sum()
            batch = replace(risk, columns=risk.columns[rows], targets=risk.targets[rows], shares=shares)
            ramp = min(1.0, max(0.0, (step / n_steps - RAMP[0]) / (RAMP[1] - RAMP[0])))
            _, slopes = batch(stack_of(parts, stack), PENALTY * ramp)
            rate = RATE * (0.5 * (1 + np.cos(np.pi * step / n_steps)) + LAST_RATE) * min(1.0, step / WARM_UP)
            corrections = [1 - beta**step for beta in BETAS]
            for part, slope, (first, second) in zip(parts, slopes, moments, strict=True):
                first += (1 - BETAS[0]) * (slope - first)
                second += (1 - BETAS[1]) * (slope * slope - second)
                part -= (rate / corrections[0]) * first / (np.sqrt(second / corrections[1]) + EPSILON)
        return stack_of(parts, stack)
