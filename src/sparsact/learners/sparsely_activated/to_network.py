r"""Networks within the scale (W, B): trees written as k-sparse ones, and thresholds raised until a network is one.

On the region where :math:`x_i = a_i` for the t columns of the leaf, the sum :math:`\sum_i a_i x_i - t` is 0; elsewhere
it is at most -2. So

.. math:: \sigma\Big(\ell(x) + \Gamma \Big(\sum_i a_i x_i - t\Big)\Big)

is :math:`\sigma(\ell(x))` on the leaf and 0 elsewhere once :math:`2 \Gamma \ge \max \ell`: the gated network of [A]_,
Appendix A, with the smallest Gamma that serves.

With :math:`u_j = \pm 1` the scale of Definition 2 of [A]_ binds unit by unit: :math:`\|w_j\| \le W`,
:math:`|b_j| \le B`. A unit :math:`\theta` stands for its multiple :math:`c(\theta)\,\theta` within the limits,

.. math:: c(\theta) = \min\Big(1, \frac{W}{\|w\|}, \frac{B}{|b|}\Big), \qquad
          \nabla c = -\frac{c}{\|w\|^2} \nabla \tfrac12 \|w\|^2 \ \text{ or } \ -\frac{c}{b} \nabla b,

and since :math:`\sigma(c z) = c\,\sigma(z)`, descent over :math:`\theta` needs no other constraint:

.. math:: \min_\theta \ \frac{1}{2 m} \sum_i \big(h_\theta(a_i) - y_i\big)^2
          + \frac{\mu}{2 m} \sum_i \sum_{j \notin \mathrm{top}_k(i)} \sigma(\langle \theta_j, a_i \rangle)^2

by L-BFGS, with :math:`\mu` raised step by step: at first units may share rows and sort out which row is whose, at the
end what is left of the excess is small, and :func:`separated` takes it away by raising thresholds.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 2 and Appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample, signs_taken
from sparsact.learners.sparsely_activated.tree import Node
from sparsact.network import SparselyActivatedNetwork

SLACK: Final = 1e-9  # above the least Gamma, so that rounding does not switch a unit on
MARGIN: Final = 1e-9  # below a limit, so that rounding does not cross it
ROWS_AT_ONCE: Final = 4096
LARGEST: Final = 1e307  # sum of magnitudes in a pre-activation
CLEARANCE: Final = 1e-9  # by which a raised threshold exceeds the pre-activation that it is to switch off, relatively


@dataclass(frozen=True, eq=False)
class GateUnits:
    r"""Units :math:`u_j \sigma(\langle \theta_j, a \rangle)` over the design of a sample, with :math:`u_j = \pm 1`.

    Nothing is lost by :math:`u_j = \pm 1`: the size of u can be moved into :math:`\theta`, which leaves the scale
    (W, B) as it was or makes it smaller.

    Attributes
    ----------
    signs : ndarray of shape (s,)
        The :math:`u_j`.
    theta : ndarray of shape (s, n + 1)
        Weights over the design.
    """

    signs: Array
    theta: Array

    def __len__(self) -> int:
        return len(self.signs)

    def values(self, design: Array) -> Array:
        """Values of the network at rows of the design, (m,)."""
        return np.asarray(np.maximum(design @ self.theta.T, 0.0) @ self.signs)


def units_of(trees: Iterable[Node], sample: TrainingSample, *, everywhere: bool = True) -> GateUnits:
    """The network of a sum of trees.

    Parameters
    ----------
    trees : iterable of Node
        The trees.
    sample : TrainingSample
        The rows that they were fitted to.
    everywhere : bool, default=True
        Gates close on the whole ``box`` of the sample. Otherwise on its rows, at a lower scale.
    """
    signs, theta = [], [np.zeros((0, sample.n + 1))]
    for leaf in (leaf for tree in trees for leaf in tree.leaves()):
        piece = leaf.piece
        linear = sample.design[leaf.rows] @ piece.theta
        for sign in signs_taken(linear) if piece.kind == "affine" else [piece.sign] * bool((linear > 0).any()):
            function = piece.theta if piece.kind == "relu" else sign * piece.theta
            signs.append(float(sign))
            theta.append(_gated(function, leaf, sample, everywhere=everywhere)[None])
    return GateUnits(np.array(signs), np.concatenate(theta))


def _gated(function: Array, leaf: Node, sample: TrainingSample, *, everywhere: bool) -> Array:
    """The function of a leaf with its gates, which are at columns where the function itself is zero."""
    if not leaf.gates:
        return function
    columns, literals = (np.array(each) for each in zip(*leaf.gates, strict=True))
    if everywhere:
        least = (function[-1] + np.maximum(function[:-1] * sample.box[0], function[:-1] * sample.box[1]).sum()) / 2
    else:
        wrong = np.count_nonzero(sample.design[:, columns] != literals, axis=1)
        outside = wrong > 0
        least = np.max(sample.design[outside] @ function / (2 * wrong[outside]), initial=0.0)
    gate = max(float(least), 0.0) * (1 + SLACK)
    gated = function.copy()
    gated[columns] += gate * literals
    gated[-1] -= gate * len(columns)
    return gated


@dataclass(frozen=True, eq=False)
class NormLimits:
    """Largest norm of weights and size of thresholds over X, as functions of units over a design.

    All in units of the size of the targets, so that nothing overflows when that is huge.

    Attributes
    ----------
    W, B : float
        The limits over that size, infinite where there is none.
    stretch : ndarray of shape (n + 1,)
        The norm of w is that of ``stretch * theta``.
    threshold : ndarray of shape (n + 1,)
        b is ``threshold @ theta``.
    """

    W: float
    B: float
    stretch: Array
    threshold: Array

    @classmethod
    def of(cls, sample: TrainingSample, max_weight: float | None, max_bias: float | None) -> NormLimits:
        """Limits over the columns and targets of a sample as they were given."""
        W, B = (np.inf if limit is None else (1 - MARGIN) * limit / sample.size for limit in (max_weight, max_bias))
        stretch = np.append(1.0 / sample.radius, 0.0)
        return cls(W, B, stretch, np.append(stretch[:-1] * sample.centre, -1.0))

    @property
    def bind(self) -> bool:
        """Whether there is any limit."""
        return bool(np.isfinite(self.W) or np.isfinite(self.B))

    def shrinkage(self, theta: Array) -> tuple[Array, Array]:
        """The factors c (s,) of units (s, n + 1), and their gradients, (s, n + 1)."""
        factors, gradients = np.ones(len(theta)), np.zeros_like(theta)
        if not self.bind:
            return factors, gradients
        weights = self.stretch * theta
        norms, thresholds = row_norms(weights), theta @ self.threshold
        with np.errstate(all="ignore"):
            of_weights = np.where(norms > self.W, self.W / norms, 1.0)
            of_bias = np.where(np.abs(thresholds) > self.B, self.B / np.abs(thresholds), 1.0)
            along_weights = -of_weights[:, None] * (weights / norms[:, None]) * (self.stretch / norms[:, None])
            along_bias = -(of_bias / thresholds)[:, None] * self.threshold
        factors = np.minimum(of_weights, of_bias)
        by_bias = (factors == of_bias)[:, None]
        return factors, np.where((factors < 1)[:, None], np.where(by_bias, along_bias, along_weights), 0.0)

    def shrunk(self, theta: Array) -> Array:
        """The units within the limits."""
        return self.shrinkage(theta)[0][:, None] * theta


def row_norms(weights: Array) -> Array:
    """Euclidean norm of each row; no square overflows or vanishes."""
    largest = np.abs(weights).max(axis=1, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(((weights / largest[:, None]) ** 2).sum(axis=1)))


def network_of(
    units: GateUnits,
    sample: TrainingSample,
    X: Array,
    max_active: int,
    max_weight: float | None,
    max_bias: float | None,
) -> SparselyActivatedNetwork:
    """The network over X, with rounding errors corrected.

    Rounding on the way from the design to X may switch a unit on at a row where its gates held it at zero. Its
    threshold is raised past that row; a unit that would leave the scale by that is dropped, and so is one that would
    overflow. At least one unit stays, as a network has a unit even when it is zero.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        W, b = sample.in_columns_of_x(units.theta)
        there = np.abs(W) @ np.maximum(np.abs(X).max(axis=0), 1.0) + np.abs(b) < LARGEST
    network = SparselyActivatedNetwork(units.signs[there], W[there], b[there])
    while True:
        network = _within_scale(network, max_weight, max_bias)
        raised = _thresholds(network, X, max_active)
        if np.array_equal(raised, network.b):
            return network
        network = SparselyActivatedNetwork(network.u, network.W, raised)


def _thresholds(network: SparselyActivatedNetwork, X: Array, max_active: int) -> Array:
    """Thresholds raised at every row that has more than ``max_active`` units on, by exact count."""
    raised = network.b.copy()
    for rows in np.array_split(X, -(-len(X) // ROWS_AT_ONCE)):
        active = network.active(rows)
        crowded = active.sum(axis=1) > max_active
        if not crowded.any():
            continue
        linear = rows[crowded] @ network.W.T
        heights = np.where(active[crowded], linear - network.b, -np.inf)
        smaller = np.argsort(-heights, axis=1, kind="stable")[:, max_active:]
        surplus = np.zeros_like(heights, dtype=bool)
        np.put_along_axis(surplus, smaller, True, axis=1)
        surplus &= active[crowded]
        doubt = 4 * rows.shape[1] * np.finfo(float).eps * (np.abs(rows[crowded]) @ np.abs(network.W.T))
        lift = np.where(surplus, linear + doubt, -np.inf).max(axis=0)
        raised = np.where(lift >= raised, np.nextafter(np.maximum(lift, raised), np.inf), raised)
    return raised


def _within_scale(
    network: SparselyActivatedNetwork, max_weight: float | None, max_bias: float | None
) -> SparselyActivatedNetwork:
    """The network without the units that exceed a limit."""
    norms = row_norms(network.W)
    kept = np.ones(network.s, dtype=bool)
    if max_weight is not None:
        kept &= norms <= max_weight
    if max_bias is not None:
        kept &= np.abs(network.b) <= max_bias
    if kept.all() and network.s:
        return network
    if not kept.any():
        return SparselyActivatedNetwork(np.ones(1), np.zeros((1, network.n)), np.zeros(1))
    return SparselyActivatedNetwork(network.u[kept], network.W[kept], network.b[kept])


def excess_of(outputs: Array, max_active: int) -> Array:
    """Outputs of the units (m, s), none negative, each row's ``max_active`` largest set to zero."""
    if outputs.shape[1] <= max_active:
        return np.zeros_like(outputs)
    excess, rows = outputs.copy(), np.arange(len(outputs))
    for _ in range(max_active):
        excess[rows, excess.argmax(axis=1)] = 0.0
    return excess


def separated(units: GateUnits, sample: TrainingSample, max_active: int) -> GateUnits:
    """The units with thresholds raised until no row has more than ``max_active`` above zero."""
    theta = units.theta.copy()
    excess = excess_of(np.maximum(sample.design @ theta.T, 0.0), max_active).max(axis=0, initial=0.0)
    theta[:, -1] -= excess * (1 + CLEARANCE)
    return GateUnits(units.signs, theta)
