"""Base of memories: each input reads the rows of a large table that a router names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.layers.gather import gather_sum
from sparsact.layers.routed_layer import RoutedLayer
from sparsact.routing.array_functions import is_transformed
from sparsact.routing.operators import is_watched
from sparsact.routing.selection import Selection


class ZeroEmbedding(nn.Embedding):
    """Rows that are 0 at first; DistributedDataParallel takes sparse gradients of embeddings only."""

    def reset_parameters(self) -> None:
        """Fill with 0."""
        nn.init.zeros_(self.weight)


class Memory(RoutedLayer):
    """Base: ``table`` of rows, 0 at first, so that a memory beside a residual connection begins as nothing."""

    table: ZeroEmbedding

    @property
    def sparse(self) -> bool:
        """Whether the gradient of the table is sparse."""
        return self.table.sparse

    @property
    def values(self) -> Tensor:
        """The rows, (rows, d_model)."""
        return self.table.weight

    def _read(self, selection: Selection, indices: Tensor) -> Tensor:
        """Sums (m, d_model) of the rows that indices (m, k) name, times the weights, in the dtype of the table."""
        values, real, weights = self.values, selection.real, selection.weights.to(self.values.dtype)
        watched = is_watched(values, indices)
        if is_transformed() or not (self.sparse or watched):  # with derivatives of every order
            return gather_sum(weights, values, indices)
        if watched:  # compilers know no sizes that depend on numbers, torch's no gradient of bags
            rows = F.embedding(indices.clamp(min=0), values, sparse=self.sparse)
            return torch.einsum("mk,mkd->md", weights, rows)
        if real is not None:  # padding touches no row
            indices, weights = indices[real], weights[real]
        sums = F.embedding_bag(indices, values, mode="sum", sparse=self.sparse, per_sample_weights=weights)
        return sums if real is None else sums.new_zeros(len(real), sums.shape[1]).masked_scatter(real[:, None], sums)

    def extra_repr(self) -> str:
        """Shape of the table, and kind of its gradient."""
        return f"{tuple(self.values.shape)}, sparse={self.sparse}"


def of_tokens(tensor: Any, what: str, kinds: str, shape: Sequence[int] | None = None) -> Tensor:
    """The tensor, if it has an entry for each token: bool for the ``kinds`` "bool", else integers; None: any shape."""
    wanted = f"`{what}` must be a tensor of {kinds}" + ("" if shape is None else f" of shape {tuple(shape)}")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{wanted}; got {type(tensor).__name__}: pass torch.as_tensor({what}).")
    if tensor.dtype not in ((torch.bool,) if kinds == "bool" else (torch.int32, torch.int64)):
        raise TypeError(f"{wanted}; got {tensor.dtype}: pass {what}.{'bool' if kinds == 'bool' else 'long'}().")
    if shape is not None and tensor.shape != tuple(shape):
        raise ValueError(f"{wanted}, one for each token; got shape {tuple(tensor.shape)}.")
    return tensor
