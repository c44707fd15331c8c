"""A binary tree of hyperplanes: a leaf for each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, integers, namespace, ones, precise, scores, sigmoid
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import check_random_state, check_sizes

MAX_LEVELS: Final = 24


@dataclass(frozen=True)
class Tree(Router):
    r"""Chooses the leaf at the end of a path down a binary tree of learned hyperplanes: fast feedforward networks.

    Node v sends the input to the right with probability :math:`\sigma(\langle a_v, x \rangle + b_v)`. In training all
    :math:`2^D` leaves are on, each with the product of the probabilities on its path, and these add up to 1; else the
    more probable way is taken at each node, D products instead of :math:`2^D` [1]_.

    Parameters
    ----------
    depth : int
        Levels of nodes, D, at most 24.
    random_state : int, default=0
        Seed of the nodes; used if no state is given.

    References
    ----------
    .. [1] P. Belcak, R. Wattenhofer, "Fast Feedforward Networks", 2023, Algorithm 1.

    Examples
    --------
    A single node, which sends positive inputs to the right; in training both leaves are on, with probabilities:

    >>> import numpy as np
    >>> node = {"nodes": np.array([[2.0]]), "biases": np.array([0.0])}
    >>> Tree(1)(np.array([[3.0], [-3.0]]), node).indices.tolist()
    [[1], [0]]
    >>> Tree(1)(np.array([[0.0]]), node, training=True).weights.tolist()
    [[0.5, 0.5]]
    """

    name: ClassVar[str] = "tree"
    state_names: ClassVar[tuple[str, ...]] = ("nodes", "biases")
    trainable: ClassVar[tuple[str, ...]] = ("nodes", "biases")
    depth: int
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "depth")
        check_random_state(self)
        if self.depth > MAX_LEVELS:
            raise ValueError(f"`depth` must be at most {MAX_LEVELS}, because a tree has 2**depth leaves.")

    def width(self, in_features: int) -> int:
        """Leaves."""
        return int(2**self.depth)

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``nodes`` (2**depth - 1, in_features), normal with variance 1 / in_features; ``biases``, zeros."""
        n_nodes = 2**self.depth - 1
        return {"nodes": rng.normal(scale=in_features**-0.5, size=(n_nodes, in_features)), "biases": np.zeros(n_nodes)}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """All leaves with their probabilities in training; else the one leaf that the walk ends at."""
        return self._mixture(x, state) if training else self._walk(x, state)

    def _walk(self, x: Array, state: State) -> Selection:
        xp = namespace(x)
        dtype = precise(x, *state.values())
        node = xp.zeros((x.shape[0],), dtype=xp.int64, device=x.device)
        path = []
        for _ in range(self.depth):
            score = xp.sum(xp.astype(state["nodes"][node], dtype) * x, axis=1) + state["biases"][node]
            node = 2 * node + 1 + xp.astype(score > 0, xp.int64)
            path.append(score)
        leaf = (node - (2**self.depth - 1))[:, None]
        return Selection.of(leaf, ones(tuple(leaf.shape), x), 2**self.depth, logits=xp.stack(path, axis=1))

    def _mixture(self, x: Array, state: State) -> Selection:
        xp = namespace(x)
        logits = scores(x, state["nodes"]) + state["biases"]
        left, right = sigmoid(-logits), sigmoid(logits)
        weights = ones((x.shape[0], 1), logits)
        for level in range(self.depth):
            nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
            ways = xp.stack([weights * left[:, nodes], weights * right[:, nodes]], axis=2)
            weights = xp.reshape(ways, (x.shape[0], 2 ** (level + 1)))
        leaves = xp.broadcast_to(integers(2**self.depth, x), (x.shape[0], 2**self.depth))
        return Selection.of(leaves, xp.astype(weights, x.dtype), 2**self.depth, logits=logits)

    def flops(self, in_features: int) -> int:
        """A product, a sum with the bias and a comparison at each level of the walk."""
        return self.depth * (2 * in_features + 1)
