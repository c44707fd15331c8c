"""One unit of each block, by a low-rank controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, constant, integers, namespace, ones, scores, taken
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import check_random_state, check_sizes


@dataclass(frozen=True)
class BlockTop1(Router):
    r"""In each of s blocks of t' units, chooses the one with the highest controller score (Section 3.1 of the paper).

    The scores of [1]_ are :math:`U (D x)`, of rank r. In training a unit's weight is 1 with the gradient of its
    probability within the block (a straight-through estimator); a layer may add Gumbel noise as the state ``noise``.

    Parameters
    ----------
    n_blocks, block_size : int
        Number s of blocks and number t' of units in each.
    rank : int, optional
        Rank r of the controller; default: the number of blocks, or of columns if there are fewer.
    random_state : int, default=0
        Seed of the controller; used if no state is given.

    References
    ----------
    .. [1] S. Jaszczur et al., "Sparse is Enough in Scaling Transformers", 2021, Section 3.1.

    Examples
    --------
    Four units in two blocks, one of each is on; the scores of this controller are x times 1, 2, 3 and -3:

    >>> import numpy as np
    >>> controller = {"down": np.array([[1.0]]), "up": np.array([[1.0], [2.0], [3.0], [-3.0]])}
    >>> BlockTop1(2, 2, rank=1)(np.array([[1.0], [-1.0]]), controller).indices.tolist()
    [[1, 2], [0, 3]]
    """

    name: ClassVar[str] = "block_top1"
    state_names: ClassVar[tuple[str, ...]] = ("down", "up")
    trainable: ClassVar[tuple[str, ...]] = ("down", "up")
    n_blocks: int
    block_size: int
    rank: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_blocks", "block_size")
        check_sizes(self, "rank", optional=True)
        check_random_state(self)

    def width(self, in_features: int) -> int:
        """Units of all blocks."""
        return self.n_blocks * self.block_size

    def max_active(self, in_features: int) -> int:
        """One per block."""
        return self.n_blocks

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``down`` (rank, in_features) and ``up`` (units, rank), normal, of the scale that keeps variances."""
        rank = self._rank(in_features)
        return {
            "down": rng.normal(scale=in_features**-0.5, size=(rank, in_features)),
            "up": rng.normal(scale=rank**-0.5, size=(self.width(in_features), rank)),
        }

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """One unit a block; the scores (m, units) are the logits."""
        xp = namespace(x)
        logits = scores(scores(x, state["down"]), state["up"])
        noisy = logits + state["noise"] if "noise" in state else logits
        blocks = xp.reshape(noisy, (x.shape[0], self.n_blocks, self.block_size))
        places = xp.argmax(blocks, axis=2)
        weights = ones((x.shape[0], self.n_blocks), x)
        if training:
            top = constant(xp.max(blocks, axis=2, keepdims=True))
            exponentials = xp.exp(blocks - top)
            probabilities = exponentials / xp.sum(exponentials, axis=2, keepdims=True)
            chosen = taken(probabilities, places[:, :, None])[:, :, 0]
            weights = weights + xp.astype(chosen - constant(chosen), x.dtype)
        units = places + integers(self.n_blocks, x) * self.block_size
        return Selection.of(units, weights, self.width(x.shape[1]), logits=logits)

    def flops(self, in_features: int) -> int:
        """The controller's two products, and a comparison a unit."""
        rank, width = self._rank(in_features), self.width(in_features)
        return 2 * rank * in_features + 2 * rank * width + width

    def _rank(self, in_features: int) -> int:
        return self.rank or min(self.n_blocks, in_features)
