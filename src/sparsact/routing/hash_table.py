"""Experts by the number of a token, from a table: balanced by how often tokens occur, or clustered by embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.routing.array_functions import Array, namespace, ones
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import Selection
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import check_random_state, check_sizes, checked_size


@dataclass(frozen=True)
class HashTable(Router):
    """Chooses the experts that a table lists for a token id, with weight 1: the hash layers of Roller et al. [1]_.

    The id is the first column of an input, modulo ``n_tokens``. A fresh table gives every expert the same number of
    ids, at random; :func:`balanced_table` takes their frequencies into account, :func:`clustered_table` their
    embeddings. In a layer, the table is a buffer: ``layer.routing.table.copy_(torch.as_tensor(table))``.

    Parameters
    ----------
    n_tokens, n_experts : int
        Number of rows of the table, and of experts.
    n_active : int, default=1
        Number of experts per token.
    random_state : int, default=0
        Seed of the table; used if no state is given.

    References
    ----------
    .. [1] S. Roller et al., "Hash Layers for Large Sparse Models", 2021, Sections 3.1 and 3.2.

    Examples
    --------
    >>> table = {"table": np.array([[1], [0], [1]])}
    >>> HashTable(3, 2)([[0], [1], [2], [2]], table).indices.tolist()
    [[1], [0], [1], [1]]
    """

    name: ClassVar[str] = "hash_table"
    state_names: ClassVar[tuple[str, ...]] = ("table",)
    n_tokens: int
    n_experts: int
    n_active: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_tokens", "n_experts", "n_active")
        check_random_state(self)
        check_choice(self.n_active, self.n_experts)

    def width(self, in_features: int) -> int:
        """``n_experts``."""
        return self.n_experts

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def initial_state(self, in_features: int, *, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """``table`` (n_tokens, n_active) int64: as :func:`balanced_table` of ids that are all as frequent."""
        order = rng.permutation(self.n_tokens)
        table = np.empty((self.n_tokens, self.n_active), dtype=np.int64)
        table[order] = balanced_table(np.ones(self.n_tokens), self.n_experts, n_active=self.n_active)
        return {"table": table}

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The row of the table for each id, in increasing order."""
        xp = namespace(x)
        ids = xp.astype(xp.floor(xp.astype(x[:, 0], xp.float64)), xp.int64) % self.n_tokens
        units = xp.sort(xp.astype(state["table"], xp.int64)[ids], axis=1)
        return Selection.of(units, ones(tuple(units.shape), x), self.n_experts)

    def flops(self, in_features: int) -> int:
        """A remainder and ``n_active`` entries."""
        return 1 + self.n_active


def balanced_table(counts: ArrayLike, n_experts: int, *, n_active: int = 1) -> NDArray[np.int64]:
    """Table that spreads the occurrences of tokens evenly: the most frequent first, each to the least loaded experts.

    ``n_tokens * n_experts`` operations.

    Parameters
    ----------
    counts : array-like of shape (n_tokens,)
        Number of occurrences of each token.
    n_experts, n_active : int
        Experts, and experts per token.

    Returns
    -------
    table : ndarray of shape (n_tokens, n_active), int64
        Table for :class:`HashTable`. Loads of two experts differ by at most the largest count.

    Examples
    --------
    >>> balanced_table([5, 1, 2, 3], 2)[:, 0]
    array([0, 0, 1, 1])
    """
    weights = checked_reals(counts, "`counts`")
    if weights.ndim != 1 or not len(weights) or (weights < 0).any():
        raise ValueError(f"`counts` must be one number from 0 for each token; got shape {weights.shape}.")
    check_choice(checked_size(n_active, "`n_active`"), checked_size(n_experts, "`n_experts`"))
    load, table = np.zeros(n_experts), np.empty((len(weights), n_active), dtype=np.int64)
    for token in np.argsort(-weights, kind="stable"):
        chosen = np.argsort(load, kind="stable")[:n_active]
        load[chosen] += weights[token]
        table[token] = np.sort(chosen)
    return table


def clustered_table(
    embeddings: ArrayLike, n_experts: int, *, n_active: int = 1, random_state: int = 0
) -> NDArray[np.int64]:
    """Table that gives tokens of near embeddings the same experts: the nearest of ``n_experts`` centres of k-means.

    Parameters
    ----------
    embeddings : array-like of shape (n_tokens, d)
        Embeddings of a trained model, for instance.
    n_experts, n_active : int
        Centres, and centres per token.
    random_state : int, default=0
        Seed of k-means.

    Returns
    -------
    table : ndarray of shape (n_tokens, n_active), int64
        Table for :class:`HashTable`. Loads follow the clusters and may be uneven.

    Examples
    --------
    >>> table = clustered_table([[0.0], [9.0], [0.1], [9.1]], 2)[:, 0]
    >>> bool(table[0] == table[2] != table[1] == table[3])
    True
    """
    from sklearn.cluster import KMeans

    rows = checked_reals(embeddings, "`embeddings`")
    check_choice(checked_size(n_active, "`n_active`"), checked_size(n_experts, "`n_experts`"))
    if rows.ndim != 2 or len(rows) < n_experts:
        raise ValueError(f"`embeddings` needs a row for each of {n_experts} experts, or more; got {rows.shape}.")
    distances = KMeans(n_experts, n_init=4, random_state=random_state).fit(rows).transform(rows)
    return np.sort(np.argsort(distances, axis=1, kind="stable")[:, :n_active], axis=1)
