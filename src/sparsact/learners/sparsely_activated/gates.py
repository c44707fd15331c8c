r"""Trees written as networks: a leaf of t literals becomes a unit that these t gates switch off everywhere else.

On the region where :math:`x_i = a_i` for the t columns of the leaf, the sum :math:`\sum_i a_i x_i - t` is 0; elsewhere
it is at most -2. So

.. math:: \sigma\Big(\ell(x) + \Gamma \Big(\sum_i a_i x_i - t\Big)\Big)

is :math:`\sigma(\ell(x))` on the leaf and 0 elsewhere once :math:`2 \Gamma \ge \max \ell`: the gated network of [A]_,
Appendix A, with the smallest Gamma that serves.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sparsact.learners.sparsely_activated.pieces import signs_taken
from sparsact.learners.sparsely_activated.sample import Array, TrainingSample
from sparsact.learners.sparsely_activated.tree import Node

SLACK = 1e-9  # above the least Gamma, so that rounding does not switch a unit on


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
        Gates close on the whole ``box`` of the sample. Otherwise on its rows, which smaller gates may do: that keeps
        the scale low.
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
