"""The k best of n * n units by sums of two scores: product keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, constant, integers, namespace, scores, taken
from sparsact.routing.expert_gates import softmax
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import Selection
from sparsact.routing.top_k import largest
from sparsact.validation.parameters import check_random_state, check_sizes


@dataclass(frozen=True)
class ProductKeys(Router):
    r"""Exact top-k of :math:`t = n^2` units, in :math:`O(\sqrt t)` for each query: product keys [1]_.

    A query has two halves, and unit :math:`n i + j` the score

    .. math:: \langle q_1, c_i \rangle + \langle q_2, c'_j \rangle,

    so the k best units are among the :math:`k^2` of the k best i and the k best j. Weights are the softmax over the k
    best. A query of several heads is cut into one for each; head h has the units from :math:`h t` on and its own keys.

    Parameters
    ----------
    n_keys : int
        n, for each half.
    n_active : int
        k, of each head.
    n_heads : int, default=1
        Heads.
    random_state : int, default=0
        Seed of the keys; used if no state is given.

    Notes
    -----
    Among units with equal scores the first win, as in :class:`TopK`. Where rounding alone makes two sums equal, another
    unit of the same score may win than a top-k of all t sums would choose.

    References
    ----------
    .. [1] G. Lample et al., "Large Memory Layers with Product Keys", 2019, Section 3.

    Examples
    --------
    >>> keys = {"keys": np.array([[[[0.0], [1.0], [5.0]], [[0.0], [2.0], [3.0]]]])}
    >>> ProductKeys(3, 2)([[1.0, 1.0]], keys).indices  # 5 + 2 and 5 + 3
    array([[7, 8]])
    """

    name: ClassVar[str] = "product_keys"
    state_names: ClassVar[tuple[str, ...]] = ("keys",)
    trainable: ClassVar[tuple[str, ...]] = ("keys",)
    n_keys: int
    n_active: int
    n_heads: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_keys", "n_active", "n_heads")
        check_random_state(self)
        check_choice(self.n_active, self.n_keys**2)

    def width(self, in_features: int) -> int:
        """n_keys ** 2 for each head; an error where queries do not fall into halves."""
        if in_features % (2 * self.n_heads):
            raise ValueError(
                f"queries of {in_features} columns do not fall into two equal halves for each of {self.n_heads} heads; "
                f"pass a multiple of {2 * self.n_heads}."
            )
        return self.n_heads * self.n_keys**2

    def max_active(self, in_features: int) -> int:
        """``n_active`` of each head."""
        return self.n_heads * self.n_active

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``keys`` (heads, 2, n_keys, columns of half a query), uniform within 1 / sqrt(columns)."""
        half = in_features // (2 * self.n_heads)
        return {"keys": rng.uniform(-(half**-0.5), half**-0.5, (self.n_heads, 2, self.n_keys, half))}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The k best units of each head; the scores (m, heads, 2, n_keys) of the halves are the logits."""
        xp = namespace(x)
        m, heads, n, k, keys = x.shape[0], self.n_heads, self.n_keys, self.n_active, state["keys"]
        few, half = min(k, n), keys.shape[-1]
        halves = [
            scores(x[:, (2 * h + i) * half : (2 * h + i + 1) * half], keys[h, i]) for h in range(heads) for i in (0, 1)
        ]
        logits = xp.reshape(xp.stack(halves, axis=1), (m, heads, 2, n))
        flat = xp.reshape(logits, (m * heads * 2, n))
        places = largest(constant(flat), few)  # increasing: so are the pairs, and the first of equals is chosen
        best = xp.reshape(taken(flat, places), (m * heads, 2, few))
        places = xp.reshape(places, (m * heads, 2, few))
        sums = xp.reshape(best[:, 0, :, None] + best[:, 1, None, :], (m * heads, few * few))
        units = xp.reshape(places[:, 0, :, None] * n + places[:, 1, None, :], (m * heads, few * few))
        chosen = largest(constant(sums), k)
        weights = xp.reshape(softmax(taken(sums, chosen)), (m, heads * k))
        units = xp.reshape(taken(units, chosen), (m, heads, k)) + integers(heads, x)[:, None] * n**2
        units = xp.reshape(units, (m, heads * k))
        return Selection.of(units, xp.astype(weights, x.dtype), self.width(x.shape[1]), logits=logits)

    def flops(self, in_features: int) -> int:
        """Products with all keys, their comparisons, and ``n_active ** 2`` sums and comparisons a head."""
        return 2 * self.n_keys * (in_features + self.n_heads) + 2 * self.n_heads * self.n_active**2
