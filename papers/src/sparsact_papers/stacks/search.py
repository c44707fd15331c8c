"""Searches for stacks: joint descents from random units, and one layer, compared on rows held out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.descent_search import FEWEST, Descended, HeldOut, split
from sparsact.learners.sparsely_activated.leaf_models import Array
from sparsact.learners.sparsely_activated.random_starts import BATCH, BETAS, EPSILON, LAST_RATE, RAMP, WARM_UP
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack, StackLayer
from sparsact_papers.stacks.joint import JointRisk, scaled, sparse_on

N_STARTS: Final = 8
PENALTY: Final = 1.0
LARGEST: Final = 1e6  # weight over standardised columns
Floats = NDArray[np.float32]


def random_stacks(
    risk: JointRisk, n_units: Sequence[int], *, rate: float, n_steps: int, rng: np.random.Generator
) -> list[Stack]:
    """Stacks over the columns of the risk, the best first."""
    m, n = risk.columns.shape
    design = np.column_stack([risk.columns, np.ones(m)]).astype(np.float32)
    targets, weights = risk.targets.astype(np.float32), (risk.shares * m).astype(np.float32)
    parts, below = list[Floats](), 0
    for s in n_units:
        own = rng.standard_normal((N_STARTS, s, n + 1)) / np.sqrt(n)
        own[:, :, -1] = rng.uniform(-1.2, 0.8, own.shape[:2])
        parts += [own.astype(np.float32)]
        parts += [(rng.standard_normal((N_STARTS, s, below)) / np.sqrt(max(below, 1))).astype(np.float32)]
        below = s
    parts.append((rng.standard_normal((N_STARTS, below)) / np.sqrt(below)).astype(np.float32))
    moments: list[Any] = [(np.zeros_like(part), np.zeros_like(part)) for part in parts]
    order, at, size = rng.permutation(m), 0, min(BATCH, m)
    for step in range(1, n_steps + 1):
        if at + size > m:
            order, at = rng.permutation(m), 0
        rows = order[at : at + size]
        at += size
        ramp = min(1.0, max(0.0, (step / n_steps - RAMP[0]) / (RAMP[1] - RAMP[0])))
        along = slopes(design[rows], targets[rows], weights[rows], parts, risk.max_active, PENALTY * ramp)
        now = rate * (0.5 * (1 + np.cos(np.pi * step / n_steps)) + LAST_RATE) * min(1.0, step / WARM_UP)
        corrections = [1 - beta**step for beta in BETAS]
        for part, slope, (first, second) in zip(parts, along, moments, strict=True):
            first += (1 - BETAS[0]) * (slope - first)
            second += (1 - BETAS[1]) * (slope * slope - second)
            part -= (now / corrections[0]) * first / (np.sqrt(second / corrections[1]) + EPSILON)
    finite = [np.nan_to_num(part, posinf=0.0, neginf=0.0).clip(-LARGEST, LARGEST).astype(np.float64) for part in parts]
    stacks = [unstacked([part[start] for part in finite]) for start in range(N_STARTS)]
    return sorted(stacks, key=lambda stack: risk(stack, PENALTY)[0])


def unstacked(parts: Sequence[NDArray[np.float64]]) -> Stack:
    """One stack, from its parts: weights over the design and over the layer below, for each layer; the read-out."""
    layers = [
        StackLayer(W, -T[:, -1], T[:, :-1]) if level else StackLayer(T[:, :-1], -T[:, -1])
        for level, (T, W) in enumerate(zip(parts[:-1:2], parts[1::2], strict=True))
    ]
    return Stack(parts[-1], layers)


def slopes(
    design: Floats,
    targets: Floats,
    weights: Floats,
    parts: Sequence[Floats],
    max_active: Sequence[int],
    penalty: float,
) -> list[Floats]:
    """Gradients along the parts of all stacks: for each layer (starts, s, n + 1) and (starts, s, r), and the read-out.

    The mean penalised error of a batch, half of it, as :class:`.JointRisk` has it.
    """
    own, above, u = parts[:-1:2], parts[1::2], parts[-1]
    outputs = list[Floats]()
    for T, W in zip(own, above, strict=True):
        z = design @ T.transpose(0, 2, 1)
        if outputs:
            z += outputs[-1] @ W.transpose(0, 2, 1)
        outputs.append(np.maximum(z, 0, out=z))
    shares = weights / np.float32(len(design))
    errors = ((outputs[-1] * u[:, None]).sum(axis=2) - targets) * shares
    gradient: list[Floats] = [np.einsum("ri,rij->rj", errors, outputs[-1])]
    back = errors[:, :, None] * u[:, None]
    scale = float(shares @ targets**2)
    for level in range(len(own) - 1, -1, -1):
        a, k, last = outputs[level], max_active[level], level == len(own) - 1
        if penalty and a.shape[2] > k:
            readers = np.abs(u) if last else np.sqrt((above[level + 1] ** 2).sum(axis=1))
            sizes = a * readers[:, None]
            largest = np.partition(sizes, a.shape[2] - k, axis=2)[:, :, -k, None]
            strength = np.float32(penalty)
            if not last:
                total = np.einsum("rij,rij,i->r", sizes, sizes, shares)
                strength = (np.float32(penalty * scale) / np.maximum(total, 1e-30))[:, None, None]
            back += strength * shares[:, None] * (sizes * (sizes < largest)) * readers[:, None]
        back *= a > 0
        along = back.transpose(0, 2, 1)
        below = along @ outputs[level - 1] if level else np.zeros_like(above[0])
        gradient = [along @ design, below, *gradient]
        back = back @ above[level] if level else back
    return gradient


STEPS: Final = 0.4  # iterations of each joint descent for each of max_iter, and for each penalty
BATCHES: Final = 15  # steps of Adam for each of max_iter
RATES: Final = (0.1, 0.05)  # of Adam, by turns
WORTH: Final = 0.5  # share of the error of one layer at which it gives way to several
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
        Source of the split and the random starts.
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
