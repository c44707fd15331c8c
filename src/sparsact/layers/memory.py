"""What memories share: a large table, of which an input reads the rows that a router names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.layers.gather import gather_sum
from sparsact.layers.routed_layer import RoutedLayer
from sparsact.routing.array_functions import is_transformed
from sparsact.routing.operators import is_watched
from sparsact.routing.selection import Selection


class Memory(RoutedLayer):
    """Base: ``values`` (rows, d_model), 0 at first, so that a memory beside a residual connection begins as nothing."""

    values: nn.Parameter
    sparse: bool

    def _read(self, selection: Selection, indices: Tensor) -> Tensor:
        """Sums (m, d_model) of the rows that indices (m, k) name, times the weights, in the dtype of the table."""
        values, real, weights = self.values, selection.real, selection.weights.to(self.values.dtype)
        if is_transformed():
            return gather_sum(weights, values, indices)
        if real is None or is_watched(values, indices):  # compilers know no shape that depends on numbers
            return self._bags(indices.clamp(min=0), weights)
        sums = self._bags(indices[real], weights[real])  # padding touches no row
        return sums.new_zeros(len(indices), sums.shape[1]).masked_scatter(real[:, None], sums)

    def _bags(self, indices: Tensor, weights: Tensor) -> Tensor:
        if is_watched(self.values, indices):  # torch 2.13 compiles no sparse gradient of bags
            rows = F.embedding(indices, self.values, sparse=self.sparse)
            return torch.einsum("mk,mkd->md", weights, rows)
        return F.embedding_bag(indices, self.values, mode="sum", sparse=self.sparse, per_sample_weights=weights)


def of_tokens(tensor: Any, what: str, shape: Sequence[int], dtypes: str) -> Tensor:
    """A tensor with an entry for each token, of type bool or integer."""
    is_tensor = isinstance(tensor, Tensor)
    kind = ("bool" if tensor.dtype == torch.bool else str(tensor.dtype)[6:]) if is_tensor else type(tensor).__name__
    fits = kind == "bool" if dtypes == "bool" else kind in ("int32", "int64")
    if not is_tensor or not fits or tuple(tensor.shape) != tuple(shape):
        got = f"{kind} of shape {tuple(tensor.shape)}" if is_tensor else kind
        raise ValueError(f"`{what}` must be a tensor of {dtypes} of shape {tuple(shape)}; got {got}.")
    return tensor
