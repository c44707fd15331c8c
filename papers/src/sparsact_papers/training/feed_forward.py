"""Feed-forward layers by name, all with as many active units for a token."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from sparsact.layers import BlockSparseFeedForward, MixtureOfExperts, SparselyActivatedLayer
from sparsact.routing import TopK
from sparsact_papers.training.transformer import FeedForward

TIMES: Final = 4  # units for each active one
DENSE, WIDE, TOP_K, SCALING = "dense", "dense, wide", "top-k", "Scaling"
ROUTED: Final[dict[str, dict[str, Any]]] = {
    "top-2": {"router": "top_k", "n_active": 2},
    "biases": {"router": "sigmoid", "n_active": 2, "bias_rate": 0.01},
    "Switch": {"router": "switch", "n_active": 1},
    "expert choice": {"router": "expert_choice", "n_active": 2, "causal": False},
    "LSH": {"router": "hyperplane_lsh", "n_active": 2},
    "learned LSH": {"router": "learned_lsh", "n_active": 2},
    "hash": {"router": "hash_table", "n_active": 2},
    "tree": {"router": "tree", "n_active": 1},
}
KINDS: Final = (DENSE, WIDE, TOP_K, SCALING, *ROUTED)


def feed_forward(kind: str, width: int, active: int, *, n_ids: int) -> nn.Module:
    """A layer with ReLU and biases in which each token switches on ``active`` units on average.

    Parameters
    ----------
    kind : str
        ``"dense"``, with no other units; ``"dense, wide"``, with four times as many units and all of them on; or one
        with four times as many units, some of them on: ``"top-k"``, the largest pre-activations;
        ``"Scaling"``, one unit of each four; ``"top-2"``,
        ``"biases"``, ``"expert choice"``, ``"LSH"``, ``"learned LSH"`` and ``"hash"``, two of eight experts;
        ``"Switch"`` and ``"tree"``, one of four.
    width, active : int
        Sizes of a token, and of what is on.
    n_ids : int
        Number of different tokens, for ``"hash"``.

    Returns
    -------
    layer : torch.nn.Module
    """
    if kind in (DENSE, WIDE):
        return FeedForward(width, active * (TIMES if kind == WIDE else 1))
    if kind == TOP_K:
        return SparselyActivatedLayer(width, TIMES * active, width, router=TopK(active))
    if kind == SCALING:
        return BlockSparseFeedForward(width, TIMES * active, active)
    if kind not in ROUTED:
        raise ValueError(f"`kind` must be one of {', '.join(KINDS)}; got {kind!r}.")
    options = dict(ROUTED[kind])
    k = options["n_active"]
    if active % k:
        raise ValueError(f"{kind} has {k} experts on, which must divide `active` = {active}.")
    if kind == "hash":
        options["n_tokens"] = n_ids
    return MixtureOfExperts(width, active // k, n_experts=k * TIMES, activation="relu", bias=True, **options)
