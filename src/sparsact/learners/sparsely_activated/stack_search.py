"""Searches for stacks: joint descents from random units, and one layer, compared on rows held out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from sparsact.learners.sparsely_activated.held_out import FEWEST, Descended, HeldOut, split
from sparsact.learners.sparsely_activated.joint import scaled, sparse_on
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.learners.sparsely_activated.stack_starts import random_stacks
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack

STEPS = 0.4  # iterations of each joint descent for each of max_iter, and for each penalty
BATCHES = 15  # steps of Adam for each of max_iter
RATES = (0.1, 0.05)  # of Adam, by turns
WORTH = 0.5  # share of the error of one layer at which it gives way to several
ONE_LAYER, RANDOM = "one layer", "random units"
Fit = Callable[[Array, Array, Array], SparselyActivatedNetwork]


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
        A network fitted to rows, targets and weights, with the units of all layers.
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
        """One layer with the units of all layers, and as many of them on."""
        return self._add(self._one_layer(*self.train), 1, ONE_LAYER)

    def random(self) -> Descended[Stack]:
        """The best of a few random stacks, each moved by mini-batches; then descent."""
        risk, back = scaled(*self.train, self.max_active)
        n_steps = int(BATCHES * self.max_iter)
        rate = RATES[sum(each.origin == RANDOM for each in self.found) % len(RATES)]
        start, *_ = random_stacks(risk, self.n_units, rate=rate, n_steps=n_steps, rng=self.rng)
        return self._add(*self._descended(back(start), *self.train), RANDOM)

    def best(self) -> tuple[Stack, int]:
        """The best on the rows held out, fitted to all rows, and the iterations.

        One layer, unless another has half of its error or, as noise is in both, an error below it by two standard
        errors of the difference: others say little at few rows.
        """
        best = min((each for each in self.found if each.origin == RANDOM), key=attrgetter("error"))
        one_layer = next((each for each in self.found if each.origin == ONE_LAYER), best)
        if best.error > WORTH * one_layer.error and not self.better(best, one_layer):
            best = one_layer
        if best.origin == ONE_LAYER:
            return self._one_layer(*self.all), best.iterations
        moved, iterations = self._descended(best.units, *self.all)
        return moved, best.iterations + iterations

    def _add(self, stack: Stack, iterations: int, origin: str) -> Descended[Stack]:
        found = self.judged(stack, stack(self.held), origin, iterations)
        self.least = min(self.least, found.error)
        self.found.append(found)
        return found

    def _one_layer(self, X: Array, y: Array, weights: Array) -> Stack:
        network = self.fit(X, y, weights)
        return Stack(network.u, [(network.W, network.b)])

    def _descended(self, stack: Stack, X: Array, y: Array, weights: Array) -> tuple[Stack, int]:
        """The stack after a joint descent, and the iterations; as it was, but sparse, if that is better."""
        risk, back = scaled(X, y, weights, self.max_active)
        moved, iterations = risk.in_class(back.inverse(stack), max(1, int(STEPS * self.max_iter)))
        stacks = [sparse_on(each, X, self.max_active) for each in (back(moved), stack)]
        return min(stacks, key=lambda each: float(weights @ (each(X) - y) ** 2)), max(1, iterations)
